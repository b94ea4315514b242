// Connections whose partitions belong to several workers: order and results are as with one.
#include <gtest/gtest.h>

#include <deque>
#include <map>

#include "data_client.h"
#include "support/sim_random.h"

namespace mq::broker {
namespace {

using model::Offset;
using model::PartitionId;
using testing::BrokerWorld;
using testing::RawClient;

/// One client that pipelines produce requests of random partitions, and what it expects of them.
class Pipeline {
 public:
  Pipeline(RawClient client, std::vector<PartitionId> partitions)
      : client_(std::move(client)), partitions_(std::move(partitions)) {}

  void send(testing::SimRandom& random) {
    std::vector<testing::ProduceItem> items;
    for (const auto& partition : partitions_) {
      if (random.chance(0.3)) items.push_back({partition, sequences_[partition]++});
    }
    if (items.empty()) items.push_back({partitions_[0], sequences_[partitions_[0]]++});
    const auto correlation = testing::send_produce(client_, items);
    for (const auto& item : items) waiting_[item.partition].push_back(correlation);
    sent_[correlation] = std::move(items);
  }
  [[nodiscard]] bool done() const noexcept { return sent_.empty(); }

  // PRO-3, PAR-2
  void receive() {
    const auto answer = client_.receive();
    ASSERT_TRUE(answer);
    const auto sent = sent_.find(answer->head.correlation_id);
    ASSERT_NE(sent, sent_.end()) << "answered twice or never asked";
    const auto results = testing::results_of(*answer);
    ASSERT_EQ(results.size(), sent->second.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      const auto& id = sent->second[i].partition;
      EXPECT_TRUE(results[i].status.ok()) << results[i].status.text;
      EXPECT_EQ(results[i].partition, id);
      auto& line = waiting_[id];
      EXPECT_EQ(line.front(), answer->head.correlation_id) << "an answer overtook another";
      line.pop_front();
      const auto& [last, before] = newest_.try_emplace(id, Offset(-1));
      EXPECT_GT(results[i].base_offset, last->second);
      last->second = results[i].base_offset;
    }
    sent_.erase(sent);
  }
  /// What was acknowledged can be read.
  void check_readable() {
    testing::FetchAsk ask;
    for (const auto& [id, offset] : newest_)
      ask.entries.push_back(testing::from(id, offset.value(), 1));
    const auto fetched = testing::fetch(client_, ask);
    ASSERT_EQ(fetched.results.size(), newest_.size());
    for (const auto& result : fetched.results) {
      EXPECT_TRUE(result.status.ok());
      EXPECT_GT(result.high_watermark, newest_.at(result.partition));
    }
  }

 private:
  RawClient client_;
  std::vector<PartitionId> partitions_;
  std::map<PartitionId, std::uint64_t> sequences_;
  std::map<PartitionId, std::deque<std::uint32_t>> waiting_;
  std::map<PartitionId, Offset> newest_;
  std::map<std::uint32_t, std::vector<testing::ProduceItem>> sent_;
};

TEST(CrossWorker, AnswersKeepTheOrderOfEachPartition) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    BrokerWorld world{seed, 4};
    world.limits.requests_before_move = 3;
    ASSERT_TRUE(world.start());
    testing::SimRandom random(seed);
    const auto memory = world.create_topic("memory", 8, "memory");
    const auto disk = world.create_topic("disk", 8, "disk");
    std::vector<Pipeline> pipelines;
    for (int i = 0; i < 4; ++i) {
      auto client = world.connect();
      client.hello(static_cast<std::uint64_t>(i) + 1);
      std::vector<PartitionId> partitions;
      const int count = i == 0 ? 1 : 6;  // one of them moves for certain
      for (int j = 0; j < count; ++j)
        partitions.push_back({j % 2 == 0 ? memory : disk, (i + j) % 8});
      pipelines.emplace_back(std::move(client), std::move(partitions));
    }
    for (int round = 0; round < 12; ++round) {
      for (auto& pipeline : pipelines) {
        for (std::uint64_t i = random.between(1, 5); i > 0; --i) pipeline.send(random);
      }
      for (auto& pipeline : pipelines) {
        while (!pipeline.done()) pipeline.receive();
        if (::testing::Test::HasFatalFailure()) return;
        pipeline.check_readable();
      }
    }
  }
}

}  // namespace
}  // namespace mq::broker
