#include "broker/process_stats.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/real/posix_file_system.h"
#include "support/sim_file_system.h"

namespace mq::broker {
namespace {

TEST(ProcessStats, TheSystemTellsOfThisProcess) {
  base::PosixFileSystem files;
  const auto stats = read_process_stats(files);
  EXPECT_EQ(stats.process_id, ::getpid());
  EXPECT_GT(stats.resident_bytes, 1U << 20);
  EXPECT_LT(stats.resident_bytes, std::uint64_t{1} << 34);
}

TEST(ProcessStats, WithoutProcThereAreZeros) {
  testing::SimFileSystem files;
  EXPECT_EQ(read_process_stats(files).resident_bytes, 0U);
}

}  // namespace
}  // namespace mq::broker
