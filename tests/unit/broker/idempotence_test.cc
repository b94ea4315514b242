#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data_client.h"
#include "protocol/init_producer.h"
#include "started_broker.h"

namespace mq::broker {
namespace {

using model::Offset;
using model::PartitionId;
using protocol::WireError;
using ::testing::HasSubstr;
using testing::produce;
using testing::ProduceItem;

struct IdempotenceTest : testing::StartedBroker {
  testing::RawClient client(std::uint64_t connection = 1) { return world.client(1, connection); }
  protocol::InitProducerResponse init(testing::RawClient& client) {
    protocol::InitProducerRequest request;
    const auto answer = client.call(protocol::ApiKey::init_producer, protocol::encode(request));
    const auto response = protocol::decode_init_producer_response(answer.header_bytes());
    EXPECT_TRUE(response);
    return response ? *response : protocol::InitProducerResponse();
  }
  /// A batch of two records under the producer's name.
  static ProduceItem item(const PartitionId& partition, std::uint64_t number, std::int64_t producer,
                          std::int32_t sequence, std::int32_t epoch = 0) {
    std::string batch = testing::make_batch(2);
    model::set_producer({reinterpret_cast<std::byte*>(batch.data()), batch.size()},
                        {producer, epoch}, sequence);
    return {partition, number, batch};
  }
};

TEST_P(IdempotenceTest, EveryProducerGetsAnIdOfItsOwnAlsoAfterARestart) {
  auto one = client();
  const auto first = init(one);
  EXPECT_TRUE(first.envelope.status.ok());
  EXPECT_EQ(first.producer_epoch, 0);
  EXPECT_GT(init(one).producer_id, first.producer_id);
  ASSERT_TRUE(world.stop());
  ASSERT_TRUE(world.start());
  auto other = client();
  EXPECT_GT(init(other).producer_id, first.producer_id + 1);
}

// IDM-2
TEST_P(IdempotenceTest, ARepeatOverAnotherConnectionGetsTheFirstOffset) {
  const PartitionId id{world.create_topic("orders"), 0};
  auto first = client(1);
  const auto producer = init(first).producer_id;
  const auto sent = produce(first, {item(id, 0, producer, 0), item(id, 1, producer, 2)});
  ASSERT_TRUE(sent[1].status.ok());
  auto second = client(2);
  const auto again = produce(second, {item(id, 0, producer, 0), item(id, 1, producer, 2)});
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(again[i].status.ok()) << again[i].status.text;
    EXPECT_EQ(again[i].base_offset, sent[i].base_offset);
    EXPECT_EQ(again[i].append_time_ms, sent[i].append_time_ms);
  }
  EXPECT_EQ(produce(second, {item(id, 2, producer, 4)})[0].base_offset, Offset(4));
  EXPECT_EQ(world.counter("produce_repeats_total"), 2);
}

TEST_P(IdempotenceTest, RepeatsAreKnownAfterAStopAndAfterAKill) {
  const PartitionId id{world.create_topic("orders", 1, "disk"), 0};
  std::int64_t producer = -1;
  {
    auto first = client(1);
    producer = init(first).producer_id;
    ASSERT_TRUE(produce(first, {item(id, 0, producer, 0)})[0].status.ok());
  }
  ASSERT_TRUE(world.stop());
  ASSERT_TRUE(world.start());
  auto second = client(2);
  const auto again = produce(second, {item(id, 0, producer, 0)});
  EXPECT_EQ(again[0].base_offset, Offset(0));
  EXPECT_EQ(produce(second, {item(id, 1, producer, 2)})[0].base_offset, Offset(2));
}

TEST_P(IdempotenceTest, RefusalsSayWhichSequence) {
  const PartitionId id{world.create_topic("orders"), 0};
  auto one = client();
  const auto unknown = produce(one, {item(id, 0, 7, 2)})[0].status;
  EXPECT_EQ(unknown.error(), WireError::unknown_producer);
  EXPECT_FALSE(unknown.advice.retriable);
  EXPECT_FALSE(unknown.advice.maybe_applied);
  EXPECT_THAT(unknown.text, HasSubstr("producer 7 epoch 0, sequence 2"));
  EXPECT_TRUE(produce(one, {item(id, 0, 7, 0)})[0].status.ok());
  EXPECT_EQ(produce(one, {item(id, 1, 7, 4)})[0].status.error(), WireError::out_of_order_sequence);
  EXPECT_TRUE(produce(one, {item(id, 0, 7, 0, 1)})[0].status.ok());
  EXPECT_EQ(produce(one, {item(id, 1, 7, 2)})[0].status.error(), WireError::producer_fenced);
}

TEST_P(IdempotenceTest, ANameWithoutASequenceIsRefused) {
  const PartitionId id{world.create_topic("orders"), 0};
  auto one = client();
  EXPECT_EQ(produce(one, {item(id, 0, 7, -1)})[0].status.error(), WireError::corrupt_batch);
  EXPECT_EQ(produce(one, {item(id, 0, -1, 0)})[0].status.error(), WireError::corrupt_batch);
}

INSTANTIATE_TEST_SUITE_P(Workers, IdempotenceTest, ::testing::Values(1, 3));

}  // namespace
}  // namespace mq::broker
