#include <algorithm>

#include "producer_fixture.h"

namespace mq::testing {
namespace {

using client::Appended;
using protocol::Status;
using protocol::WireError;
using std::chrono::milliseconds;
using std::chrono::seconds;

std::vector<std::string> numbered(int count, const std::string& prefix = "r") {
  std::vector<std::string> values;
  for (int i = 0; i < count; ++i) values.push_back(prefix + std::to_string(i));
  return values;
}

class ProducerTest : public ProducerWorld {
 protected:
  /// A producer, and the handle of topic "orders", which is new.
  client::ProducerTopicPtr start_with_orders() { return start_with_orders(producer_config()); }
  client::ProducerTopicPtr start_with_orders(ProducerConfig config, int partitions = 1,
                                             std::uint32_t batch_bytes_max = 1 << 20) {
    broker->add_topic("orders", partitions, batch_bytes_max);
    start(std::move(config));
    return topic("orders");
  }
  /// Whether every one of the values was taken.
  bool accepts(client::ProducerTopic& to, const std::vector<std::string>& values) {
    return std::ranges::all_of(
        values, [&](const auto& value) { return send(to, value) == Appended::accepted; });
  }
  /// CLI-1: one result each, all delivered, and the offset names the record.
  void expect_all_delivered(const std::vector<std::string>& values, int partition = 0) {
    const auto stored = broker->values("orders", partition);
    for (const std::string& value : values) {
      ASSERT_EQ(results[value].size(), 1u) << value;
      ASSERT_TRUE(results[value].front()) << to_string(results[value].front().error());
      const auto offset = static_cast<std::size_t>(results[value].front()->offset);
      ASSERT_LT(offset, stored.size());
      EXPECT_EQ(stored[offset], value);
    }
  }
};

TEST_F(ProducerTest, DeliversInOrderWithOneResultEach) {
  const auto orders = start_with_orders();
  const auto values = numbered(1000);
  ASSERT_TRUE(accepts(*orders, values));
  ASSERT_TRUE(wait_for_results());
  EXPECT_EQ(broker->values("orders", 0), values);
  EXPECT_EQ(order[0], values);
  expect_all_delivered(values);
  EXPECT_EQ(results["r0"].front()->attempts, 1u);
  EXPECT_EQ(core->stats().records_delivered, 1000u);
  EXPECT_EQ(core->accumulator().buffered_bytes(), 0u);
}

TEST_F(ProducerTest, IdleProducerSendsAtOnceAndABurstBecomesABatch) {
  auto config = producer_config();
  config.linger = milliseconds(5000);
  const auto orders = start_with_orders(config);
  ASSERT_EQ(send(*orders, "first"), Appended::accepted);
  EXPECT_TRUE(simulator.run_until([&] { return results.contains("first"); }, milliseconds(200)));
  broker->produce_delay = milliseconds(20);
  for (const auto& value : numbered(100)) {
    ASSERT_EQ(send(*orders, value), Appended::accepted);
    simulator.run_for(std::chrono::microseconds(100));
  }
  ASSERT_TRUE(wait_for_results(seconds(1)));
  EXPECT_LE(broker->produced_batches, 4);
}

// CLI-2
TEST_F(ProducerTest, RefusedBatchGoesAgainInFrontOfThoseBehindIt) {
  auto config = producer_config();
  config.batch_bytes = 1024;
  const auto orders = start_with_orders(config);
  broker->refuse = [](const FakeBroker::Produced& batch) -> std::optional<Status> {
    if (batch.number != 2) return std::nullopt;
    return Status::of(WireError::storage_full, "no space", 1);
  };
  const auto values = numbered(500);
  ASSERT_TRUE(accepts(*orders, values));
  ASSERT_TRUE(wait_for_results());
  EXPECT_EQ(broker->values("orders", 0), values);
  EXPECT_EQ(order[0], values);
  expect_all_delivered(values);
  EXPECT_GT(core->stats().batches_retried, 1u);
}

TEST_F(ProducerTest, LostAnswerRepeatsTheBatchButKeepsTheOrder) {
  auto config = producer_config();
  config.batch_bytes = 1024;
  const auto orders = start_with_orders(config);
  broker->lose = [](const FakeBroker::Produced& batch) { return batch.number == 3; };
  const auto values = numbered(500);
  ASSERT_TRUE(accepts(*orders, values));
  ASSERT_TRUE(wait_for_results());
  expect_all_delivered(values);
  EXPECT_EQ(order[0], values);
  // Without the repeats the log is what was sent.
  auto stored = broker->values("orders", 0);
  std::vector<std::string> last;
  std::map<std::string, std::size_t> place;
  for (std::size_t i = 0; i < stored.size(); ++i) place[stored[i]] = i;
  for (std::size_t i = 0; i < stored.size(); ++i) {
    if (place[stored[i]] == i) last.push_back(stored[i]);
  }
  EXPECT_EQ(last, values);
}

TEST_F(ProducerTest, LastRefusalIsTheResultOfItsBatchAlone) {
  auto config = producer_config();
  config.batch_bytes = 1024;
  const auto orders = start_with_orders(config);
  broker->refuse = [](const FakeBroker::Produced& batch) -> std::optional<Status> {
    if (batch.number != 2) return std::nullopt;
    return Status::of(WireError::invalid_request, "not this one", 1);
  };
  const auto values = numbered(500);
  ASSERT_TRUE(accepts(*orders, values));
  ASSERT_TRUE(wait_for_results());
  EXPECT_EQ(order[0], values);
  const std::uint64_t failed = core->stats().records_failed;
  EXPECT_GT(failed, 0u);
  EXPECT_LT(failed, 100u);
  EXPECT_EQ(broker->values("orders", 0).size(), 500 - failed);
}

TEST_F(ProducerTest, RecordThatWasAlwaysRefusedIsNotThere) {
  auto config = producer_config();
  config.delivery_timeout = seconds(3);
  const auto orders = start_with_orders(config);
  broker->refuse = [](const FakeBroker::Produced&) -> std::optional<Status> {
    return Status::of(WireError::storage_full, "no space", 1);
  };
  ASSERT_EQ(send(*orders, "full"), Appended::accepted);
  ASSERT_TRUE(wait_for_results());
  EXPECT_EQ(results["full"].front().error().code, Errc::delivery_timed_out);
  EXPECT_FALSE(results["full"].front().error().maybe_applied);
  EXPECT_TRUE(broker->values("orders", 0).empty());
}

TEST_F(ProducerTest, RecordWithoutAnAnswerMayBeThere) {
  auto config = producer_config();
  config.delivery_timeout = seconds(3);
  const auto orders = start_with_orders(config);
  broker->silent = true;
  ASSERT_EQ(send(*orders, "lost"), Appended::accepted);
  ASSERT_TRUE(wait_for_results());
  EXPECT_EQ(results["lost"].front().error().code, Errc::delivery_timed_out);
  EXPECT_TRUE(results["lost"].front().error().maybe_applied);
}

// CLI-4
TEST_F(ProducerTest, FullBufferRefusesUntilAnswersMakeRoom) {
  auto config = producer_config();
  config.buffer_bytes = 10'000;
  const auto orders = start_with_orders(config);
  broker->silent = true;
  const std::string value(1000, 'x');
  int accepted = 0;
  while (send(*orders, value + std::to_string(accepted)) == Appended::accepted) ++accepted;
  EXPECT_GE(accepted, 7);
  EXPECT_LE(accepted, 9);
  EXPECT_LE(core->accumulator().buffered_bytes(), 10'000u);
  simulator.run_for(seconds(1));
  EXPECT_EQ(send(*orders, value), Appended::full);
  broker->silent = false;
  broker->break_connections();
  ASSERT_TRUE(wait_for_results());
  EXPECT_EQ(send(*orders, value), Appended::accepted);
  ASSERT_TRUE(wait_for_results());
}

TEST_F(ProducerTest, OversizedRecordFailsAloneAndNamesBothSizes) {
  const auto orders = start_with_orders(producer_config(), 1, 100 << 10);
  ASSERT_TRUE(accepts(*orders, numbered(50, "a")));
  EXPECT_EQ(send(*orders, std::string(150 << 10, 'x')), Appended::refused);
  EXPECT_EQ(refusal->code, Errc::record_too_large);
  EXPECT_NE(refusal->message.find("102400"), std::string::npos) << refusal->message;
  EXPECT_NE(refusal->message.find("1537"), std::string::npos) << refusal->message;
  ASSERT_TRUE(accepts(*orders, numbered(50, "b")));
  ASSERT_TRUE(wait_for_results());
  auto expected = numbered(50, "a");
  for (auto& value : numbered(50, "b")) expected.push_back(value);
  EXPECT_EQ(broker->values("orders", 0), expected);
}

TEST_F(ProducerTest, RecordOfExactlyTheLimitPassesAndOneByteMoreDoesNot) {
  const auto orders = start_with_orders(producer_config(), 1, 100 << 10);
  std::size_t size = (100 << 10) - 96;
  while (send(*orders, std::string(size, 'x')) == Appended::refused) --size;
  EXPECT_GT(size, (100u << 10) - 96 - 24);
  ASSERT_TRUE(wait_for_results());
  ASSERT_EQ(broker->topic("orders").partitions[0].batches.size(), 1u);
  EXPECT_EQ(broker->topic("orders").partitions[0].batches[0].size(), 100u << 10);
}

TEST_F(ProducerTest, LargeRecordThatCompressesWellIsSent) {
  auto config = producer_config();
  config.compression = Compression::lz4;
  const auto orders = start_with_orders(config, 1, 100 << 10);
  const std::string value(1 << 20, 'x');
  ASSERT_EQ(send(*orders, value), Appended::accepted);
  ASSERT_TRUE(wait_for_results());
  EXPECT_EQ(broker->values("orders", 0), std::vector<std::string>{value});
}

TEST_F(ProducerTest, BatchAboveALoweredLimitIsSplit) {
  const auto orders = start_with_orders();
  broker->topic("orders").batch_bytes_max = 2000;
  auto values = numbered(1000);
  values[500] = std::string(5000, 'x');
  ASSERT_TRUE(accepts(*orders, values));
  ASSERT_TRUE(wait_for_results());
  EXPECT_EQ(order[0], values);
  ASSERT_EQ(results[values[500]].size(), 1u);
  EXPECT_EQ(results[values[500]].front().error().code, Errc::record_too_large);
  values.erase(values.begin() + 500);
  EXPECT_EQ(broker->values("orders", 0), values);
  expect_all_delivered(values);
}

TEST_F(ProducerTest, SilentBrokerEndsInOneTimeoutPerRecord) {
  auto config = producer_config();
  config.delivery_timeout = seconds(3);
  config.request_timeout = seconds(1);
  const auto orders = start_with_orders(config);
  broker->silent = true;
  const auto values = numbered(100);
  ASSERT_TRUE(accepts(*orders, values));
  ASSERT_TRUE(wait_for_results(seconds(5)));
  for (const auto& value : values) {
    ASSERT_EQ(results[value].size(), 1u);
    EXPECT_EQ(results[value].front().error().code, Errc::delivery_timed_out);
    EXPECT_TRUE(results[value].front().error().maybe_applied);
  }
  EXPECT_EQ(order[0], values);
}

TEST_F(ProducerTest, UnsentRecordsThatTimeOutAreNotMaybeApplied) {
  auto config = producer_config();
  config.delivery_timeout = seconds(3);
  const auto orders = start_with_orders(config);
  network.cut("client", "broker");
  network.reset_connections("client");
  simulator.run_for(seconds(1));
  ASSERT_EQ(send(*orders, "late"), Appended::accepted);
  ASSERT_TRUE(wait_for_results(seconds(10)));
  const Error& error = results["late"].front().error();
  EXPECT_EQ(error.code, Errc::delivery_timed_out);
  EXPECT_FALSE(error.maybe_applied);
  EXPECT_NE(error.message.find("broker:9500"), std::string::npos) << error.message;
  network.heal();
}

TEST_F(ProducerTest, StopFailsWhatIsLeftAndCountsIt) {
  const auto orders = start_with_orders();
  broker->silent = true;
  const auto values = numbered(100);
  ASSERT_TRUE(accepts(*orders, values));
  simulator.run_for(milliseconds(50));
  EXPECT_EQ(run(simulator, core->stop()), 100u);
  for (const auto& value : values) {
    ASSERT_EQ(results[value].size(), 1u);
    EXPECT_EQ(results[value].front().error().code, Errc::closed);
  }
  EXPECT_EQ(send(*orders, "later"), Appended::refused);
  core.reset();
}

TEST_F(ProducerTest, UnackedRecordsAreDeliveredOnceWritten) {
  auto config = producer_config();
  config.acks = Acks::none;
  const auto orders = start_with_orders(config);
  const auto values = numbered(200);
  ASSERT_TRUE(accepts(*orders, values));
  ASSERT_TRUE(wait_for_results());
  simulator.run_for(seconds(1));
  EXPECT_EQ(broker->values("orders", 0), values);
  EXPECT_EQ(results["r7"].front()->offset, -1);
}

/// No answer says that there is news, so it asks while it sends, and not when it does not.
TEST_F(ProducerTest, UnackedRecordsFindPartitionsThatWereAdded) {
  auto config = producer_config();
  config.acks = Acks::none;
  const auto orders = start_with_orders(config);
  ASSERT_EQ(send(*orders, "first"), Appended::accepted);
  ASSERT_TRUE(wait_for_results());
  broker->topic("orders").partitions.resize(2);
  simulator.run_for(seconds(20));
  const int asked = broker->metadata_requests;
  EXPECT_EQ(send(*orders, "too early", 1), Appended::refused);
  ASSERT_EQ(send(*orders, "second"), Appended::accepted);
  ASSERT_TRUE(simulator.run_until([&] { return send(*orders, "there", 1) == Appended::accepted; },
                                  seconds(2)));
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(send(*orders, "more"), Appended::accepted);
    simulator.run_for(milliseconds(100));
  }
  ASSERT_TRUE(wait_for_results());
  EXPECT_EQ(broker->values("orders", 1), std::vector<std::string>{"there"});
  EXPECT_LE(broker->metadata_requests - asked, 5);
}

TEST_F(ProducerTest, DeletedTopicFailsItsRecordsAndTheHandle) {
  const auto orders = start_with_orders();
  ASSERT_EQ(send(*orders, "before"), Appended::accepted);
  ASSERT_TRUE(wait_for_results());
  broker->remove_topic("orders");
  broker->add_topic("orders", 1);
  ASSERT_EQ(send(*orders, "into the void"), Appended::accepted);
  ASSERT_TRUE(wait_for_results());
  EXPECT_EQ(results["into the void"].front().error().code, Errc::unknown_topic_id);
  ASSERT_TRUE(
      simulator.run_until([&] { return send(*orders, "again") == Appended::refused; }, seconds(5)));
  EXPECT_EQ(refusal->code, Errc::unknown_topic_id);
  const auto anew = topic("orders");
  ASSERT_EQ(send(*anew, "new"), Appended::accepted);
  ASSERT_TRUE(wait_for_results());
  EXPECT_EQ(broker->values("orders", 0), std::vector<std::string>{"new"});
}

TEST_F(ProducerTest, UnknownTopicAndPartitionAreRefusedByName) {
  const auto orders = start_with_orders(producer_config(), 2);
  auto missing = run(simulator, core->topic("ordres"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Errc::unknown_topic);
  EXPECT_EQ(send(*orders, "x", 2), Appended::refused);
  EXPECT_EQ(refusal->code, Errc::unknown_partition);
}

TEST_F(ProducerTest, StaleConnectionIsLeftForANewerOne) {
  const auto orders = start_with_orders();
  ASSERT_EQ(send(*orders, "one"), Appended::accepted);
  ASSERT_TRUE(wait_for_results());
  broker->topic("orders").partitions[0].connection += 1;
  ASSERT_EQ(send(*orders, "two"), Appended::accepted);
  ASSERT_TRUE(wait_for_results(seconds(5)));
  EXPECT_EQ(broker->values("orders", 0), (std::vector<std::string>{"one", "two"}));
}

TEST_F(ProducerTest, SendAfterAnIdleSpellReconnectsAtOnce) {
  const auto orders = start_with_orders();
  ASSERT_EQ(send(*orders, "one"), Appended::accepted);
  ASSERT_TRUE(wait_for_results());
  simulator.run_for(seconds(15));
  broker->break_connections();
  simulator.run_for(seconds(15));
  ASSERT_EQ(send(*orders, "two"), Appended::accepted);
  ASSERT_TRUE(wait_for_results(seconds(1)));
  EXPECT_EQ(broker->values("orders", 0), (std::vector<std::string>{"one", "two"}));
}

TEST_F(ProducerTest, SilentlyDroppedConnectionIsGivenUpAfterTheRequestTimeout) {
  auto config = producer_config();
  config.request_timeout = seconds(5);
  const auto orders = start_with_orders(config);
  ASSERT_EQ(send(*orders, "one"), Appended::accepted);
  ASSERT_TRUE(wait_for_results());
  network.crash("broker", SimNetwork::Crash::silent);
  broker_network = network.join("broker", broker_runtime);
  auto old = std::move(broker);
  start_broker();
  broker->add_topic("orders", 1);
  broker->topic("orders").id = old->topic("orders").id;
  ASSERT_EQ(send(*orders, "two"), Appended::accepted);
  EXPECT_TRUE(wait_for_results(seconds(8)));
  EXPECT_EQ(broker->values("orders", 0), (std::vector<std::string>{"two"}));
  run(simulator, old->stop());
}

TEST_F(ProducerTest, RangesAndCookiesComeOncePerBatchInOrder) {
  auto config = producer_config();
  std::vector<std::uint64_t> cookies;
  std::int64_t next_offset = 0;
  config.on_delivery = [&](const DeliveryRange& range) {
    EXPECT_TRUE(range.ok());
    EXPECT_EQ(range.first_offset, next_offset);
    EXPECT_EQ(range.count, range.cookies.size());
    next_offset += static_cast<std::int64_t>(range.count);
    cookies.insert(cookies.end(), range.cookies.begin(), range.cookies.end());
  };
  const auto orders = start_with_orders(config);
  std::vector<std::uint64_t> expected;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    client::AppendRequest request;
    request.record.value = base::as_bytes("value");
    request.cookie = i * 3;
    expected.push_back(i * 3);
    ASSERT_EQ(core->append(*orders, request, refusal), Appended::accepted);
  }
  ASSERT_TRUE(wait_for_results());
  EXPECT_EQ(cookies, expected);
}

TEST_F(ProducerTest, FlushWaitsForWhatWasAcceptedBeforeIt) {
  broker->produce_delay = milliseconds(100);
  auto config = producer_config();
  config.linger = seconds(100);
  const auto orders = start_with_orders(config);
  ASSERT_TRUE(accepts(*orders, numbered(10)));
  simulator.run_for(milliseconds(10));
  ASSERT_TRUE(accepts(*orders, numbered(10, "x")));
  const auto flush = core->begin_flush();
  EXPECT_FALSE(core->flushed(flush));
  ASSERT_EQ(send(*orders, "after"), Appended::accepted);
  ASSERT_TRUE(simulator.run_until([&] { return core->flushed(flush); }, seconds(2)));
  EXPECT_EQ(results.size(), 20u);
  EXPECT_FALSE(results.contains("after"));
}

TEST_F(ProducerTest, KeysDecideAndRecordsWithoutKeyChangePartitionFromBatchToBatch) {
  const auto orders = start_with_orders(producer_config(), 4);
  for (int i = 0; i < 40; ++i) {
    client::AppendRequest request;
    request.record.value = base::as_bytes("value");
    ASSERT_EQ(core->append(*orders, request, refusal), Appended::accepted);
    ASSERT_TRUE(wait_for_results());
  }
  for (int partition = 0; partition < 4; ++partition)
    EXPECT_EQ(broker->values("orders", partition).size(), 10u);
}

}  // namespace
}  // namespace mq::testing
