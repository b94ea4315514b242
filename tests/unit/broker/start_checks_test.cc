#include "broker/start_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/real/posix_file_system.h"
#include "support/sim_file_system.h"

namespace mq::broker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

config::BrokerConfig bound_to(const std::string& host) {
  config::BrokerConfig config;
  config.listener.bind = {host, 9500};
  return config;
}

TEST(StartChecks, AnOrdinaryStartHasNothingToSay) {
  EXPECT_THAT(start_warnings(bound_to("127.0.0.1"), {false, 131'072}), IsEmpty());
  EXPECT_THAT(start_warnings(bound_to("::1"), {false, 131'072}), IsEmpty());
}

TEST(StartChecks, TheBootIdIsTheSameFromTheServiceManagerAndFromTheKernel) {
  testing::SimFileSystem nothing;
  EXPECT_EQ(read_boot_id(nothing, nullptr), "");
  EXPECT_EQ(read_boot_id(nothing, "0123456789abcdef0123456789abcdef"),
            "0123456789abcdef0123456789abcdef");
  EXPECT_EQ(read_boot_id(nothing, "01234567-89ab-cdef-0123-456789abcdef"),
            "0123456789abcdef0123456789abcdef");
  EXPECT_EQ(read_boot_id(nothing, "%b"), "");
  base::PosixFileSystem files;
  EXPECT_EQ(read_boot_id(files, nullptr).size(), 32U);
}

TEST(StartChecks, MountsComeFromAFileThatWasWrittenOutside) {
  base::PosixFileSystem files;
  const std::vector<std::string> directories{"/tmp", "/proc", "/no/such/directory"};
  const auto lines = mount_lines(directories);
  EXPECT_EQ(read_mount_ids(files, nullptr, directories), std::vector<std::string>(3));
  EXPECT_EQ(read_mount_ids(files, "/no/such/file", directories), std::vector<std::string>(3));

  testing::SimFileSystem written;
  const std::string text = "12 /tmp\n\nwhatever\n13 /data with a blank\n";
  const auto file = written.open("/mounts", base::OpenMode::create);
  ASSERT_TRUE(file);
  const base::Bytes bytes = base::as_bytes(text);
  ASSERT_TRUE((*file)->write_at(std::span(&bytes, 1), 0));
  EXPECT_THAT(read_mount_ids(written, "/mounts", {"/tmp", "/proc", "/data with a blank"}),
              ElementsAre("12", "", "13"));
  if (lines.empty()) GTEST_SKIP() << "the kernel does not number mounts for ever";
  EXPECT_THAT(lines, HasSubstr(" /tmp\n"));
  EXPECT_THAT(lines, ::testing::Not(HasSubstr("/no/such")));
  EXPECT_EQ(mount_lines({"/tmp"}), mount_lines({"/tmp"}));
  EXPECT_NE(lines.substr(0, lines.find(' ')), mount_lines({"/proc"}).substr(0, lines.find(' ')));
}

TEST(StartChecks, EachOddityIsOneLine) {
  EXPECT_THAT(start_warnings(bound_to("127.0.0.1"), {true, 131'072}),
              ElementsAre("the broker runs as root; it needs no privileges"));
  EXPECT_THAT(start_warnings(bound_to("0.0.0.0"), {false, 131'072}),
              ElementsAre(HasSubstr("0.0.0.0:9500 can be reached from the network")));
  EXPECT_THAT(start_warnings(bound_to("127.0.0.1"), {false, 1024}),
              ElementsAre(HasSubstr("the limit of open files is 1024")));
}

TEST(StartChecks, ConnectionsLeaveDescriptorsForData) {
  config::BrokerConfig config;
  config.limits.connections = 10'000;
  EXPECT_EQ(connections_possible(config, {false, 131'072}), 10'000U);
  EXPECT_EQ(connections_possible(config, {false, 1024}), 170U);
  EXPECT_EQ(connections_possible(config, {false, 100}), 16U);
}

TEST(StartChecks, PartitionsAndConnectionsTogetherLeaveDescriptors) {
  config::BrokerConfig config;
  config.limits.connections = 10'000;
  EXPECT_EQ(partitions_possible(config, {false, 131'072}), 120'560U);
  for (const std::uint64_t files : {1024U, 20'000U, 65'536U}) {
    EXPECT_EQ(
        partitions_possible(config, {false, files}) + connections_possible(config, {false, files}),
        files - 512);
  }
  EXPECT_EQ(partitions_possible(config, {false, 100}), 16U);
}

TEST(StartChecks, TooManyPartitionsForTheOpenFilesAreRefusedWithBothNumbers) {
  config::BrokerConfig config;
  for (const std::uint64_t connections : {10U, 10'000U}) {
    config.limits.connections = connections;
    EXPECT_EQ(why_not_served(config, {false, 1024}, partitions_possible(config, {false, 1024})),
              "");
    for (const std::size_t partitions : {503U, 2000U, 9999U}) {
      const std::string why = why_not_served(config, {false, 1024}, partitions);
      EXPECT_THAT(why, HasSubstr("a limit of 1024 open files"));
      const auto needed = std::stoull(why.substr(why.find(") to ") + 5));
      EXPECT_GE(partitions_possible(config, {false, needed}), partitions) << why;
      EXPECT_LE(needed, 512 + 2 * partitions);
    }
  }
}

}  // namespace
}  // namespace mq::broker
