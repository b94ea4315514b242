#include "mqctl/verbs/topic_view.h"

#include <gtest/gtest.h>

#include "mqctl/verbs/partition_view.h"

namespace mq::mqctl {
namespace {

/// Led by broker 1, damaged on these.
PartitionDescription partition(std::int32_t number, const std::vector<std::int32_t>& damaged) {
  PartitionDescription described;
  described.partition = number;
  described.leader = 1;
  for (const auto broker : damaged) described.replica_notes.push_back({broker, "is damaged: x"});
  return described;
}

TopicDescription topic(std::vector<PartitionDescription> partitions) {
  TopicDescription described;
  described.partitions = std::move(partitions);
  return described;
}

TEST(TopicView, PartitionsAreCountedOnceHoweverManyReplicasAreDamaged) {
  PerItem<TopicDescription> topics;
  auto leaderless = partition(2, {3});
  leaderless.leader = -1;  // what is noted there is why nobody leads it
  topics.emplace("orders",
                 topic({partition(0, {1, 2}), partition(1, {}), leaderless, partition(3, {2})}));
  topics.emplace("payments", topic({partition(0, {})}));
  topics.emplace("gone", Error{});
  const auto notes = damage_notes(topics);
  ASSERT_EQ(notes.size(), 2U);
  EXPECT_EQ(notes.at({"orders", 0}), "broker 1 is damaged: x; broker 2 is damaged: x");
  EXPECT_EQ(notes.at({"orders", 3}), "broker 2 is damaged: x");
  EXPECT_EQ(counted_by_topic(notes), (std::map<std::string, std::int32_t>{{"orders", 2}}));
}

TEST(TopicView, AListedTopicSaysHowManyPartitionsAreDamaged) {
  TopicSummary summary;
  summary.name = "orders";
  summary.partitions = 12;
  EXPECT_EQ(topic_note(summary, 0), "");
  EXPECT_EQ(topic_note(summary, 2), "2 of 12 partitions damaged: mqctl partition list orders");
  summary.partitions_not_serving = 1;
  EXPECT_EQ(topic_note(summary, 2),
            "1 of 12 partitions not served; 2 of 12 partitions damaged: mqctl partition list "
            "orders");
  const auto listed = listed_topic(summary, 2);
  const auto& members = *listed.get_if<Value::Object>();
  std::map<std::string, std::int64_t> numbers;
  for (const auto& [key, value] : members) {
    if (const auto* const number = value.get_if<std::int64_t>()) numbers[key] = *number;
  }
  EXPECT_EQ(numbers.at("partitions_damaged"), 2);
  EXPECT_EQ(numbers.at("partitions_not_serving"), 1);
  EXPECT_EQ(numbers.at("partitions"), 12);
}

}  // namespace
}  // namespace mq::mqctl
