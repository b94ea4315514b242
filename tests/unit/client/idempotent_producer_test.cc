#include "producer_fixture.h"

namespace mq::testing {
namespace {

using client::Appended;
using protocol::Status;
using protocol::WireError;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// A producer whose batches name it, and a broker that keeps the sequence rule.
class IdempotentProducerTest : public ProducerWorld {
 protected:
  IdempotentProducerTest() { idempotent = true; }

  client::ProducerTopicPtr begin(ProducerConfig made) {
    broker->add_topic("orders", 1);
    start(std::move(made));
    return topic("orders");
  }
  client::ProducerTopicPtr begin() { return begin(producer_config()); }
  void send_all(client::ProducerTopic& to, const std::vector<std::string>& values) {
    for (const auto& value : values) ASSERT_EQ(send(to, value), Appended::accepted);
  }
  /// Sends one record and waits for its result.
  const Result<Delivery>& deliver(client::ProducerTopic& to, const std::string& value) {
    EXPECT_EQ(send(to, value), Appended::accepted);
    EXPECT_TRUE(wait_for_results());
    return results.at(value).front();
  }
  /// Producer, epoch and sequence of each stored batch.
  std::vector<std::tuple<std::int64_t, std::int32_t, std::int32_t>> names() {
    std::vector<std::tuple<std::int64_t, std::int32_t, std::int32_t>> all;
    for (const auto& batch : broker->topic("orders").partitions[0].batches) {
      const auto view = model::RecordBatchView::parse(base::as_bytes(batch));
      EXPECT_TRUE(view);
      all.emplace_back(view->producer_id(), view->producer_epoch(), view->base_sequence());
    }
    return all;
  }
  std::vector<std::string> stored() { return broker->values("orders", 0); }
};

// IDM-2
TEST_F(IdempotentProducerTest, ALostAnswerIsGivenAgainAndNothingIsStoredTwice) {
  const auto orders = begin();
  broker->lose = [](const FakeBroker::Produced& batch) { return batch.number == 1; };
  const auto& result = deliver(*orders, "a");
  ASSERT_TRUE(result) << to_string(result.error());
  EXPECT_EQ(result->offset, 0);
  EXPECT_EQ(result->attempts, 2u);
  EXPECT_EQ(broker->repeats, 1);
  EXPECT_EQ(stored(), std::vector<std::string>{"a"});
  EXPECT_EQ(deliver(*orders, "b")->offset, 1);
  EXPECT_EQ(broker->init_requests, 1);
}

TEST_F(IdempotentProducerTest, FiveLostAnswersInARowAreAllGivenAgain) {
  auto made = producer_config();
  made.batch_bytes = 1024;
  made.request_timeout = seconds(2);
  const auto orders = begin(std::move(made));
  ASSERT_TRUE(deliver(*orders, "first"));
  broker->mute = true;
  std::vector<std::string> values;
  for (int i = 0; i < 8; ++i) values.push_back(std::to_string(i) + std::string(900, 'x'));
  send_all(*orders, values);
  ASSERT_TRUE(simulator.run_until([&] { return stored().size() == 6; }, seconds(1)))
      << stored().size() << " " << broker->produced_batches;
  broker->mute = false;
  broker->break_connections();
  ASSERT_TRUE(wait_for_results());
  EXPECT_GE(broker->repeats, 5);
  values.insert(values.begin(), "first");
  EXPECT_EQ(stored(), values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_TRUE(results[values[i]].front());
    EXPECT_EQ(results[values[i]].front()->offset, static_cast<std::int64_t>(i));
  }
}

TEST_F(IdempotentProducerTest, NothingIsSentBeforeThereIsAnId) {
  const auto orders = begin();
  int refusals = 4;
  broker->refuse_init = [&]() -> std::optional<Status> {
    if (refusals-- > 0) return Status::of(WireError::metadata_unavailable, "the store is away", 1);
    return std::nullopt;
  };
  ASSERT_EQ(send(*orders, "a"), Appended::accepted);
  simulator.run_for(milliseconds(60));
  EXPECT_EQ(broker->produce_requests, 0);
  ASSERT_TRUE(wait_for_results());
  EXPECT_TRUE(results["a"].front());
  EXPECT_EQ(broker->init_requests, 5);
}

TEST_F(IdempotentProducerTest, WithoutAnIdRecordsTimeOutAndSayWhy) {
  auto made = producer_config();
  made.delivery_timeout = seconds(3);
  const auto orders = begin(std::move(made));
  broker->refuse_init = [] {
    return std::optional(Status::of(WireError::metadata_unavailable, "the store is away", 1));
  };
  const auto& result = deliver(*orders, "a");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Errc::delivery_timed_out);
  EXPECT_FALSE(result.error().maybe_applied);
  EXPECT_NE(result.error().message.find("no producer id"), std::string::npos);
  EXPECT_NE(result.error().message.find("the store is away"), std::string::npos);
}

TEST_F(IdempotentProducerTest, ABrokerThatGivesNoIdsIsSaidAtOnce) {
  const auto orders = begin();
  broker->refuse_init = [] {
    return std::optional(Status::of(WireError::unsupported_api, "an old broker", 1));
  };
  EXPECT_EQ(deliver(*orders, "a").error().code, Errc::unsupported_api);
  broker->refuse_init = nullptr;
  EXPECT_TRUE(deliver(*orders, "b"));
}

// CLI-5: what is behind a batch that was given up cannot be in the log before it.
TEST_F(IdempotentProducerTest, ABatchThatWasGivenUpLeavesAGapThatIsClosed) {
  auto made = producer_config();
  made.delivery_timeout = seconds(10);
  const auto orders = begin(std::move(made));
  ASSERT_TRUE(deliver(*orders, "a"));
  broker->refuse = [](const FakeBroker::Produced&) {
    return std::optional(Status::of(WireError::storage_full, "no space", 1));
  };
  ASSERT_EQ(send(*orders, "b"), Appended::accepted);
  simulator.run_for(seconds(5));
  ASSERT_EQ(send(*orders, "c"), Appended::accepted);
  ASSERT_TRUE(simulator.run_until([&] { return results.contains("b"); }, seconds(10)));
  EXPECT_EQ(results["b"].front().error().code, Errc::delivery_timed_out);
  EXPECT_FALSE(results["b"].front().error().maybe_applied);
  broker->refuse = nullptr;
  ASSERT_TRUE(wait_for_results());
  EXPECT_EQ(results["c"].front()->offset, 1);
  EXPECT_EQ(stored(), (std::vector<std::string>{"a", "c"}));
  EXPECT_EQ(std::get<1>(names().back()), 1);
  EXPECT_EQ(std::get<2>(names().back()), 0);
}

// CLI-5: a leader that lacks it does not speak for a replica that led before, and may lead again.
TEST_F(IdempotentProducerTest, WhatMayBeInAnotherReplicaIsNotSentUnderANewEpoch) {
  auto made = producer_config();
  made.delivery_timeout = seconds(10);
  made.request_timeout = seconds(8);
  const auto orders = begin(std::move(made));
  ASSERT_TRUE(deliver(*orders, "a"));
  broker->refuse = [](const FakeBroker::Produced&) {
    return std::optional(Status::of(WireError::partition_offline, "closed", 1));
  };
  broker->mute = true;
  ASSERT_EQ(send(*orders, "b"), Appended::accepted);
  simulator.run_for(seconds(5));
  ASSERT_EQ(send(*orders, "c"), Appended::accepted);
  simulator.run_for(milliseconds(100));  // both are under way
  broker->mute = false;
  broker->break_connections();
  ASSERT_TRUE(simulator.run_until([&] { return results.contains("b"); }, seconds(10)));
  EXPECT_TRUE(results["b"].front().error().maybe_applied);
  broker->refuse = nullptr;
  ASSERT_TRUE(simulator.run_until([&] { return results.contains("c"); }, seconds(10)));
  ASSERT_FALSE(results["c"].front());
  EXPECT_EQ(results["c"].front().error().code, Errc::delivery_timed_out);
  EXPECT_TRUE(results["c"].front().error().maybe_applied);
  EXPECT_TRUE(deliver(*orders, "d"));
  EXPECT_EQ(stored(), (std::vector<std::string>{"a", "d"}));
}

TEST_F(IdempotentProducerTest, ARecordThatIsTooLargeAloneLeavesAGapThatIsClosed) {
  const auto orders = begin();
  ASSERT_TRUE(deliver(*orders, "a"));
  broker->topic("orders").batch_bytes_max = 400;
  EXPECT_EQ(deliver(*orders, std::string(600, 'x')).error().code, Errc::record_too_large);
  EXPECT_EQ(deliver(*orders, "b")->offset, 1);
  EXPECT_EQ(stored(), (std::vector<std::string>{"a", "b"}));
}

TEST_F(IdempotentProducerTest, TheHalvesOfABatchKeepItsSequences) {
  const auto orders = begin();
  ASSERT_TRUE(deliver(*orders, "a"));
  broker->topic("orders").batch_bytes_max = 400;
  broker->lose = [](const FakeBroker::Produced& batch) { return batch.number % 3 == 0; };
  std::vector<std::string> values{"a"};
  for (int i = 0; i < 12; ++i) values.push_back(std::to_string(i) + std::string(60, 'x'));
  send_all(*orders, {values.begin() + 1, values.end()});
  ASSERT_TRUE(wait_for_results());
  EXPECT_EQ(stored(), values);
  std::int32_t next = 0;
  for (const auto& [id, epoch, sequence] : names()) {
    EXPECT_EQ(epoch, 0);
    EXPECT_GE(sequence, next);
    next = sequence;
  }
}

// CLI-5
TEST_F(IdempotentProducerTest, AForgottenProducerBeginsAnewIfNothingCanBeThere) {
  const auto orders = begin();
  ASSERT_TRUE(deliver(*orders, "a"));
  broker->forget_producers();
  const auto& result = deliver(*orders, "b");
  ASSERT_TRUE(result) << to_string(result.error());
  EXPECT_EQ(stored(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(names()[0], std::tuple(1001, 0, 0));
  EXPECT_EQ(names()[1], std::tuple(1001, 1, 0));
  EXPECT_TRUE(deliver(*orders, "c"));
  EXPECT_EQ(names()[2], std::tuple(1001, 1, 1));
}

TEST_F(IdempotentProducerTest, AForgottenProducersUnansweredBatchIsNotSentAsAnother) {
  const auto orders = begin();
  ASSERT_TRUE(deliver(*orders, "a"));
  broker->lose = [this](const FakeBroker::Produced& batch) {
    if (batch.number != 2) return false;
    broker_runtime.post([this] { broker->forget_producers(); });
    return true;
  };
  const auto& result = deliver(*orders, "b");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Errc::unknown_producer);
  EXPECT_TRUE(result.error().maybe_applied);
  EXPECT_TRUE(deliver(*orders, "c"));
  EXPECT_EQ(stored(), (std::vector<std::string>{"a", "b", "c"}));
}

// CLI-5, IDM-6
TEST_F(IdempotentProducerTest, WhatMayBeThereIsNotSentForLongerThanALeaderKnowsIt) {
  auto made = producer_config();
  made.delivery_timeout = std::chrono::minutes(30);
  made.request_timeout = seconds(2);
  const auto orders = begin(std::move(made));
  ASSERT_TRUE(deliver(*orders, "a"));
  broker->mute = true;
  const auto sent_at = client_runtime.now();
  ASSERT_EQ(send(*orders, "b"), Appended::accepted);
  ASSERT_TRUE(simulator.run_until([&] { return results.contains("b"); }, std::chrono::minutes(30)));
  EXPECT_GE(client_runtime.now() - sent_at, std::chrono::minutes(5));
  EXPECT_LE(client_runtime.now() - sent_at, std::chrono::minutes(6));
  ASSERT_FALSE(results["b"].front());
  EXPECT_EQ(results["b"].front().error().code, Errc::delivery_timed_out);
  EXPECT_TRUE(results["b"].front().error().maybe_applied);
  // What was refused each time is surely not there, and has its whole time.
  broker->mute = false;
  broker->break_connections();
  broker->refuse = [](const FakeBroker::Produced&) {
    return std::optional(Status::of(WireError::too_many_producers, "a crowd", 1));
  };
  ASSERT_EQ(send(*orders, "c"), Appended::accepted);
  simulator.run_for(std::chrono::minutes(10));
  EXPECT_FALSE(results.contains("c"));
  broker->refuse = nullptr;
  ASSERT_TRUE(wait_for_results());
  EXPECT_TRUE(results["c"].front());
  EXPECT_EQ(stored(), (std::vector<std::string>{"a", "b", "c"}));
}

TEST_F(IdempotentProducerTest, WithoutAcksOrSwitchedOffNothingIsNamed) {
  auto made = producer_config();
  made.acks = Acks::none;
  const auto orders = begin(std::move(made));
  ASSERT_EQ(send(*orders, "a"), Appended::accepted);
  ASSERT_TRUE(wait_for_results());
  ASSERT_TRUE(simulator.run_until([&] { return stored().size() == 1; }, seconds(5)));
  EXPECT_EQ(names()[0], std::tuple(-1, -1, -1));
  stop();
  idempotent = false;
  start(producer_config());
  const auto again = topic("orders");
  ASSERT_TRUE(deliver(*again, "b"));
  EXPECT_EQ(names()[1], std::tuple(-1, -1, -1));
  EXPECT_EQ(broker->init_requests, 0);
}

TEST_F(IdempotentProducerTest, PartitionsHaveSequencesOfTheirOwnUnderOneId) {
  broker->add_topic("orders", 2);
  start(producer_config());
  const auto orders = topic("orders");
  for (int i = 0; i < 6; ++i)
    ASSERT_EQ(send(*orders, std::to_string(i), i % 2), Appended::accepted);
  ASSERT_TRUE(wait_for_results());
  for (const auto& partition : broker->topic("orders").partitions) {
    const auto first = model::RecordBatchView::parse(base::as_bytes(partition.batches.front()));
    EXPECT_EQ(first->base_sequence(), 0);
    EXPECT_EQ(first->producer_id(), 1001);
  }
  EXPECT_EQ(broker->init_requests, 1);
}

}  // namespace
}  // namespace mq::testing
