#include "metadata/znode_layout.h"

#include <gtest/gtest.h>

#include <set>

#include "metadata/store.h"

namespace mq::metadata::layout {
namespace {

base::Uuid some_uuid() { return *base::Uuid::from_hex("00112233445566778899aabbccddeeff"); }

TEST(ZnodeLayout, PathsAreWhatIsWrittenDown) {
  EXPECT_EQ(broker_live(model::BrokerId(3)), "/brokers/live/3");
  EXPECT_EQ(broker_epoch(model::BrokerId(3)), "/brokers/epoch/3");
  EXPECT_EQ(topic("orders.eu"), "/topics/orders.eu");
  EXPECT_EQ(topic_state(some_uuid()), "/state/00112233445566778899aabbccddeeff");
  EXPECT_EQ(partition_state({some_uuid(), 17}), "/state/00112233445566778899aabbccddeeff/17");
  EXPECT_EQ(deleting(some_uuid()), "/deleting/00112233445566778899aabbccddeeff");
}

TEST(ZnodeLayout, FoldersComeAfterTheirParents) {
  std::set<std::string, std::less<>> made{"/"};
  for (const auto& folder : folders()) {
    EXPECT_TRUE(made.contains(parent_path(folder))) << folder;
    made.insert(folder);
  }
  for (const auto path :
       {kBrokersLive, kBrokersEpoch, kBrokersHeartbeat, kTopics, kState, kDeleting})
    EXPECT_TRUE(made.contains(path)) << path;
}

TEST(ZnodeLayout, LongestTopicNameStaysAsItIs) {
  const std::string name(249, 'x');
  EXPECT_EQ(topic(name), "/topics/" + name);
  EXPECT_FALSE(check_path(topic(name)));
}

TEST(ZnodeLayout, EveryTextGivesOneGoodNameAndComesBack) {
  std::vector<std::string> texts{
      "",   ".", "..",  "...", "a/b",     "%2e",      "%", "é",
      "-x", " ", "a b", "%2F", "../../x", "a.b-c_D9", "A", std::string("\0x", 2)};
  for (int byte = 0; byte < 256; ++byte) texts.emplace_back(1, static_cast<char>(byte));
  std::set<std::string> names;
  std::set<std::string> different(texts.begin(), texts.end());
  for (const auto& text : different) {
    const auto name = escape_name(text);
    EXPECT_FALSE(check_path("/topics/" + name)) << name;
    EXPECT_EQ(name.find('/'), std::string::npos);
    EXPECT_EQ(unescape_name(name), text);
    EXPECT_TRUE(names.insert(name).second) << name;
  }
}

TEST(ZnodeLayout, NamesThatNobodyWritesAreNotRead) {
  for (const auto* name : {"%4", "%zz", "%41", "a%", "%2f", ".", "..", "a/b", ""})
    EXPECT_FALSE(unescape_name(name)) << name;
}

TEST(ZnodeLayout, BrokersAreNamedByTheirIds) {
  EXPECT_EQ(broker_heartbeat(model::BrokerId(12)), "/brokers/hb/12");
  EXPECT_EQ(parse_broker("12"), model::BrokerId(12));
  EXPECT_FALSE(parse_broker("012"));
  EXPECT_FALSE(parse_broker("x"));
}

TEST(ZnodeLayout, PartitionNumbersHaveOneSpelling) {
  EXPECT_EQ(parse_partition("0"), 0);
  EXPECT_EQ(parse_partition("9999"), 9999);
  for (const auto* name : {"", "00", "01", "-1", "+1", "1x", "2147483648", "99999999999999999999"})
    EXPECT_FALSE(parse_partition(name)) << name;
}

}  // namespace
}  // namespace mq::metadata::layout
