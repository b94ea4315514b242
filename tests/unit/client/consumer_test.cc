#include "model/record_batch_builder.h"
#include "producer_fixture.h"

namespace mq::testing {
namespace {

using protocol::Status;
using protocol::WireError;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// A stamped batch as a log has it.
std::string make_batch(const std::vector<std::string>& values, std::int64_t base,
                       model::Codec codec = model::Codec::none, std::int64_t time_ms = 1000) {
  model::RecordBatchBuilder builder(base::BufferPool::shared(), 16 << 20, 4096);
  for (const std::string& value : values) {
    model::RecordInput record;
    record.value = base::as_bytes(value);
    record.timestamp_ms = 1000;
    EXPECT_TRUE(builder.append(record));
  }
  base::SharedBytes bytes = builder.finish(codec);
  std::string text(base::as_text(bytes.bytes));
  model::stamp(base::MutableBytes(reinterpret_cast<std::byte*>(text.data()), text.size()),
               model::Offset(base), model::LeaderEpoch(1), time_ms);
  return text;
}

class ConsumerTest : public ClientWorld {
 protected:
  ~ConsumerTest() override {
    if (core) run(simulator, core->stop());
    core.reset();
  }
  ConsumerConfig consumer_config() { return config<ConsumerConfig>(); }
  void start(ConsumerConfig made) {
    core = std::make_unique<client::ConsumerCore>(client_runtime, *client_network, std::move(made));
    auto started = run(simulator, core->start());
    ASSERT_TRUE(started) << to_string(started.error());
  }
  void fill(const std::string& topic, int partition, int batches, int records,
            model::Codec codec = model::Codec::none) {
    for (int i = 0; i < batches; ++i) {
      std::vector<std::string> values;
      const auto base = broker->topic(topic).partitions[static_cast<std::size_t>(partition)].end;
      for (int j = 0; j < records; ++j) values.push_back("v" + std::to_string(base + j));
      broker->inject(topic, partition, make_batch(values, base, codec), records);
    }
  }
  Result<void> assign(const std::map<TopicPartition, Start>& partitions) {
    return run(simulator, core->assign(partitions));
  }
  /// Waits for the next batch or error.
  std::optional<Result<Batch>> take(base::Duration limit = seconds(10)) {
    std::optional<Result<Batch>> taken;
    simulator.run_until([&] { return (taken = core->take()).has_value(); }, limit);
    return taken;
  }
  std::vector<std::string> read(std::size_t count) {
    std::vector<std::string> values;
    while (values.size() < count) {
      auto taken = take();
      if (!taken || !*taken) break;
      for (const RecordView& record : **taken) values.emplace_back(as_text(*record.value));
    }
    return values;
  }
  static std::vector<std::string> expected(int from, int to) {
    std::vector<std::string> values;
    for (int i = from; i < to; ++i) values.push_back("v" + std::to_string(i));
    return values;
  }

  std::unique_ptr<client::ConsumerCore> core;
};

TEST_F(ConsumerTest, ReadsFromTheStartInOrderAndFollowsTheEnd) {
  broker->add_topic("orders", 1);
  fill("orders", 0, 10, 7);
  start(consumer_config());
  ASSERT_TRUE(assign({{{"orders", 0}, Start{Start::earliest}}}));
  EXPECT_EQ(read(70), expected(0, 70));
  EXPECT_FALSE(core->take());
  fill("orders", 0, 1, 5);
  EXPECT_EQ(read(5), expected(70, 75));
  const TopicPartition name{"orders", 0};
  EXPECT_EQ(core->positions().at(name), 75);
}

TEST_F(ConsumerTest, StartsAtEndOrAnOffsetInsideABatch) {
  broker->add_topic("orders", 2);
  fill("orders", 0, 3, 10);
  fill("orders", 1, 3, 10);
  start(consumer_config());
  ASSERT_TRUE(assign({{{"orders", 0}, Start{Start::latest}}, {{"orders", 1}, Start::at(14)}}));
  EXPECT_EQ(read(16), expected(14, 30));
  fill("orders", 0, 1, 1);
  EXPECT_EQ(read(1), expected(30, 31));
}

TEST_F(ConsumerTest, FirstFetchAsksForThePositionNotForTheStart) {
  broker->add_topic("orders", 1);
  fill("orders", 0, 1000, 10);
  broker->topic("orders").partitions[0].start = 5000;
  start(consumer_config());
  ASSERT_TRUE(assign({{{"orders", 0}, Start::at(9990)}}));
  EXPECT_EQ(read(10), expected(9990, 10'000));
  EXPECT_LE(broker->fetched_bytes, 400u);
}

TEST_F(ConsumerTest, SeekDropsWhatWasFetchedBefore) {
  broker->add_topic("orders", 1);
  fill("orders", 0, 10, 10);
  auto config = consumer_config();
  config.max_poll_records = 5;
  start(config);
  ASSERT_TRUE(assign({{{"orders", 0}, Start{Start::earliest}}}));
  EXPECT_EQ(read(5), expected(0, 5));
  ASSERT_TRUE(run(simulator, core->seek(TopicPartition{"orders", 0}, Start::at(77))));
  EXPECT_EQ(read(23), expected(77, 100));
  ASSERT_TRUE(run(simulator, core->seek(TopicPartition{"orders", 0}, Start{Start::earliest})));
  EXPECT_EQ(read(5), expected(0, 5));
  EXPECT_EQ(run(simulator, core->seek(TopicPartition{"orders", 3}, Start::at(1))).error().code,
            Errc::not_assigned);
}

TEST_F(ConsumerTest, NegativeOffsetIsRefusedAndChangesNothing) {
  broker->add_topic("orders", 1);
  fill("orders", 0, 1, 10);
  start(consumer_config());
  EXPECT_EQ(assign({{{"orders", 0}, Start::at(-1)}}).error().code, Errc::invalid_argument);
  ASSERT_TRUE(assign({{{"orders", 0}, Start::at(3)}}));
  const TopicPartition name{"orders", 0};
  EXPECT_EQ(run(simulator, core->seek(name, Start::at(-7))).error().code, Errc::invalid_argument);
  EXPECT_EQ(read(7), expected(3, 10));
}

TEST_F(ConsumerTest, NewAssignmentForgetsWhatWasWrongWithTheOldOne) {
  broker->add_topic("orders", 1);
  start(consumer_config());
  broker->refuse_fetch = [](const std::string&) -> std::optional<Status> {
    return Status::of(WireError::overloaded, "no memory", 1);
  };
  ASSERT_TRUE(assign({{{"orders", 0}, Start{}}}));
  ASSERT_TRUE(simulator.run_until([&] { return core->trouble().has_value(); }, seconds(10)));
  ASSERT_TRUE(assign({}));
  EXPECT_FALSE(core->trouble());
}

TEST_F(ConsumerTest, PausedPartitionIsNotReturnedUntilResumed) {
  broker->add_topic("orders", 2);
  fill("orders", 0, 1, 3);
  start(consumer_config());
  ASSERT_TRUE(assign({{{"orders", 0}, Start{}}, {{"orders", 1}, Start{}}}));
  simulator.run_for(milliseconds(100));
  ASSERT_TRUE(core->set_paused({{"orders", 0}}, true));
  fill("orders", 1, 1, 2);
  EXPECT_EQ(read(2), expected(0, 2));
  simulator.run_for(seconds(2));
  EXPECT_FALSE(core->take());
  ASSERT_TRUE(core->set_paused({{"orders", 0}}, false));
  EXPECT_EQ(read(3), expected(0, 3));
}

TEST_F(ConsumerTest, OutOfRangeIsAnErrorThatNamesTheOffsetAndASeekMendsIt) {
  broker->add_topic("orders", 2);
  fill("orders", 0, 1, 3);
  fill("orders", 1, 1, 3);
  start(consumer_config());
  ASSERT_TRUE(assign({{{"orders", 0}, Start::at(1000)}, {{"orders", 1}, Start{}}}));
  bool failed = false;
  std::size_t records = 0;
  for (int i = 0; i < 2; ++i) {
    auto taken = take();
    ASSERT_TRUE(taken) << (core->trouble() ? to_string(*core->trouble()) : "no trouble") << ", "
                       << broker->fetch_requests << " fetches";
    if (*taken) {
      records += (*taken)->size();
    } else {
      failed = true;
      EXPECT_EQ(taken->error().code, Errc::offset_out_of_range);
      EXPECT_NE(taken->error().message.find("1000"), std::string::npos) << taken->error().message;
      EXPECT_NE(taken->error().message.find("orders/0"), std::string::npos);
    }
  }
  EXPECT_TRUE(failed);
  EXPECT_EQ(records, 3u);
  EXPECT_FALSE(take(seconds(3)));  // told once, then it rests
  ASSERT_TRUE(run(simulator, core->seek(TopicPartition{"orders", 0}, Start::at(1))));
  EXPECT_EQ(read(2), expected(1, 3));
}

TEST_F(ConsumerTest, OutOfRangeGoesToTheStartWhenToldSo) {
  broker->add_topic("orders", 1);
  fill("orders", 0, 1, 3);
  auto config = consumer_config();
  config.on_out_of_range = OnOutOfRange::earliest;
  start(config);
  ASSERT_TRUE(assign({{{"orders", 0}, Start::at(1000)}}));
  EXPECT_EQ(read(3), expected(0, 3));
}

TEST_F(ConsumerTest, GoingToTheStartSkipsNothingOfWhatWasFetchedBefore) {
  broker->add_topic("orders", 1);
  fill("orders", 0, 10, 10);
  auto config = consumer_config();
  config.on_out_of_range = OnOutOfRange::earliest;
  config.max_poll_records = 7;
  start(config);
  ASSERT_TRUE(assign({{{"orders", 0}, Start{}}}));
  EXPECT_EQ(read(7), expected(0, 7));
  simulator.run_for(milliseconds(100));
  // Everything the fetcher knows is gone, and the log goes on further up.
  auto& log = broker->topic("orders").partitions[0];
  log.batches.clear();
  log.start = log.end = 200;
  fill("orders", 0, 1, 10);
  auto wanted = expected(7, 100);
  for (auto& value : expected(200, 210)) wanted.push_back(value);
  EXPECT_EQ(read(wanted.size()), wanted);
}

// LOG-4
TEST_F(ConsumerTest, CorruptBatchIsAnErrorAtItsOffsetAndTheOthersGoOn) {
  broker->add_topic("orders", 2);
  fill("orders", 0, 2, 10);
  broker->topic("orders").partitions[0].batches[1].back() ^= 1;
  fill("orders", 1, 1, 2);
  start(consumer_config());
  ASSERT_TRUE(assign({{{"orders", 0}, Start{}}, {{"orders", 1}, Start{}}}));
  std::map<std::int32_t, std::size_t> records;
  std::optional<Error> error;
  for (int i = 0; i < 5 && !(error && records[1] == 2); ++i) {
    auto taken = take(seconds(2));
    if (!taken) break;
    if (!*taken) {
      error = taken->error();
    } else {
      for (const RecordView& record : **taken) ++records[record.partition];
    }
  }
  EXPECT_EQ(records[0], 10u);
  EXPECT_EQ(records[1], 2u);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, Errc::corrupt_batch);
  EXPECT_NE(error->message.find("offset 10"), std::string::npos) << error->message;
  fill("orders", 0, 1, 5);
  ASSERT_TRUE(run(simulator, core->seek(TopicPartition{"orders", 0}, Start::at(20))));
  EXPECT_EQ(read(5), expected(20, 25));
}

TEST_F(ConsumerTest, RecordAboveTheFetchLimitIsDeliveredAllTheSame) {
  broker->add_topic("orders", 1);
  fill("orders", 0, 5, 1);
  broker->inject("orders", 0, make_batch({std::string(900 << 10, 'x')}, 5), 1);
  broker->topic("orders").partitions[0].end = 6;
  fill("orders", 0, 5, 1);
  auto config = consumer_config();
  config.fetch_bytes = 64 << 10;
  start(config);
  ASSERT_TRUE(assign({{{"orders", 0}, Start{}}}));
  const auto values = read(11);
  ASSERT_EQ(values.size(), 11u);
  EXPECT_EQ(values[5].size(), 900u << 10);
  EXPECT_LE(broker->fetched_bytes, 2u << 20);
}

TEST_F(ConsumerTest, CompressedBatchesAreReadAcrossPolls) {
  broker->add_topic("orders", 1);
  fill("orders", 0, 3, 100, model::Codec::lz4);
  fill("orders", 0, 3, 100, model::Codec::zstd);
  auto config = consumer_config();
  config.max_poll_records = 37;
  start(config);
  ASSERT_TRUE(assign({{{"orders", 0}, Start{}}}));
  std::vector<Batch> kept;  // views live as long as their batch
  std::size_t count = 0;
  while (count < 600) {
    auto taken = take();
    ASSERT_TRUE(taken && *taken);
    count += (*taken)->size();
    kept.push_back(**taken);
  }
  int next = 0;
  for (const Batch& batch : kept) {
    for (const RecordView& record : batch)
      EXPECT_EQ(as_text(*record.value), "v" + std::to_string(next++));
  }
}

TEST_F(ConsumerTest, FetchesAheadOnlyUpToTheBound) {
  broker->add_topic("orders", 1);
  for (int i = 0; i < 100; ++i)
    broker->inject("orders", 0, make_batch({std::string(100'000, 'x')}, i), 1);
  auto config = consumer_config();
  config.fetch_bytes = 200'000;
  config.prefetch_bytes = 1'000'000;
  start(config);
  ASSERT_TRUE(assign({{{"orders", 0}, Start{}}}));
  simulator.run_for(seconds(5));
  EXPECT_GE(broker->fetched_bytes, 800'000u);
  EXPECT_LE(broker->fetched_bytes, 1'300'000u);
  EXPECT_EQ(read(100).size(), 100u);
}

TEST_F(ConsumerTest, OneFetchWaitsAtTheBrokerWhileNothingComes) {
  broker->add_topic("orders", 3);
  start(consumer_config());
  ASSERT_TRUE(
      assign({{{"orders", 0}, Start{}}, {{"orders", 1}, Start{}}, {{"orders", 2}, Start{}}}));
  simulator.run_for(seconds(10));
  EXPECT_LE(broker->fetch_requests, 21);
  fill("orders", 1, 1, 1);
  const auto before = simulator.now();
  EXPECT_EQ(read(1).size(), 1u);
  EXPECT_LT(simulator.now() - before, milliseconds(150));
}

TEST_F(ConsumerTest, GoesOnAfterTheBrokerWasAway) {
  broker->add_topic("orders", 1);
  fill("orders", 0, 1, 3);
  start(consumer_config());
  ASSERT_TRUE(assign({{{"orders", 0}, Start{}}}));
  EXPECT_EQ(read(3), expected(0, 3));
  network.cut("client", "broker");
  network.reset_connections("client");
  simulator.run_for(seconds(20));
  ASSERT_TRUE(core->trouble());
  EXPECT_TRUE(core->trouble()->retriable);
  network.heal();
  fill("orders", 0, 1, 3);
  EXPECT_EQ(read(3), expected(3, 6));
  simulator.run_for(seconds(1));
  EXPECT_FALSE(core->trouble());
}

TEST_F(ConsumerTest, DeletedTopicIsAnErrorOnce) {
  broker->add_topic("orders", 1);
  start(consumer_config());
  ASSERT_TRUE(assign({{{"orders", 0}, Start{}}}));
  simulator.run_for(milliseconds(100));
  broker->remove_topic("orders");
  auto taken = take();
  ASSERT_TRUE(taken);
  ASSERT_FALSE(*taken);
  EXPECT_EQ(taken->error().code, Errc::unknown_topic_id);
  EXPECT_FALSE(take(seconds(3)));
}

TEST_F(ConsumerTest, SeekInADeletedTopicIsRefusedAtOnce) {
  broker->add_topic("orders", 1);
  start(consumer_config());
  ASSERT_TRUE(assign({{{"orders", 0}, Start{}}}));
  simulator.run_for(milliseconds(100));
  broker->remove_topic("orders");
  auto looking = core->topic("orders");
  const auto looked_up = run(simulator, std::move(looking));  // from now on it knows
  ASSERT_FALSE(looked_up);
  const auto before = simulator.now();
  auto seeking = core->seek({"orders", 0}, Start{});
  const auto sought = run(simulator, std::move(seeking));
  ASSERT_FALSE(sought);
  EXPECT_EQ(sought.error().code, Errc::unknown_topic_id);
  EXPECT_FALSE(sought.error().retriable);
  EXPECT_EQ(simulator.now(), before);
}

TEST_F(ConsumerTest, AssignRefusesUnknownTopicsAndPartitionsAndKeepsTheOldOnes) {
  broker->add_topic("orders", 1);
  start(consumer_config());
  ASSERT_TRUE(assign({{{"orders", 0}, Start{}}}));
  EXPECT_EQ(assign({{{"ordres", 0}, Start{}}}).error().code, Errc::unknown_topic);
  EXPECT_EQ(assign({{{"orders", 1}, Start{}}}).error().code, Errc::unknown_partition);
  fill("orders", 0, 1, 1);
  EXPECT_EQ(read(1).size(), 1u);
  ASSERT_TRUE(assign({}));
  fill("orders", 0, 1, 1);
  EXPECT_FALSE(take(seconds(2)));
}

TEST_F(ConsumerTest, NullAndEmptyKeysValuesAndHeadersStayDifferent) {
  broker->add_topic("orders", 1);
  model::RecordBatchBuilder builder(base::BufferPool::shared(), 16 << 20, 4096);
  const std::vector<model::RecordHeader> headers{
      {"a", base::as_bytes("1")}, {"a", std::nullopt}, {"b", base::as_bytes("")}};
  model::RecordInput record;
  ASSERT_TRUE(builder.append(record));
  record.key = base::as_bytes("");
  record.value = base::as_bytes("");
  record.headers = headers;
  ASSERT_TRUE(builder.append(record));
  base::SharedBytes bytes = builder.finish();
  std::string text(base::as_text(bytes.bytes));
  model::stamp(base::MutableBytes(reinterpret_cast<std::byte*>(text.data()), text.size()),
               model::Offset(0), model::LeaderEpoch(1), 1000);
  broker->inject("orders", 0, text, 2);
  start(consumer_config());
  ASSERT_TRUE(assign({{{"orders", 0}, Start{}}}));
  auto taken = take();
  ASSERT_TRUE(taken && *taken);
  const Batch& batch = **taken;
  ASSERT_EQ(batch.size(), 2u);
  EXPECT_FALSE(batch[0].key || batch[0].value);
  EXPECT_TRUE(batch[0].headers.empty());
  ASSERT_TRUE(batch[1].key && batch[1].value);
  EXPECT_TRUE(batch[1].key->empty() && batch[1].value->empty());
  ASSERT_EQ(batch[1].headers.size(), 3u);
  EXPECT_EQ(as_text(*batch[1].headers[0].value), "1");
  EXPECT_FALSE(batch[1].headers[1].value);
  EXPECT_EQ(batch[1].headers[2].name, "b");
  EXPECT_TRUE(batch[1].headers[2].value && batch[1].headers[2].value->empty());
  const Record copy = batch[1].to_owned();
  EXPECT_EQ(copy.headers().size(), 3u);
  EXPECT_FALSE(copy.headers()[1].value);
}

Timestamp at_ms(std::int64_t ms) { return Timestamp(Duration(ms)); }

TEST_F(ConsumerTest, StartsAtATimeOfTheBrokersClock) {
  broker->add_topic("orders", 2);
  for (int i = 0; i < 4; ++i)
    broker->inject("orders", 0, make_batch({"a", "b"}, i * 2, model::Codec::none, 1000 + i * 10),
                   2);
  start(consumer_config());
  ASSERT_TRUE(
      assign({{{"orders", 0}, Start::at(at_ms(1011))}, {{"orders", 1}, Start::at(at_ms(5))}}));
  const auto positions = core->positions();
  EXPECT_EQ(positions.at({"orders", 0}), 4);
  EXPECT_EQ(positions.at({"orders", 1}), 0) << "nothing there: what comes from now on";
  ASSERT_TRUE(run(simulator, core->seek({"orders", 0}, Start::at(at_ms(1000)))));
  EXPECT_EQ(core->positions().at({"orders", 0}), 0);
  ASSERT_TRUE(run(simulator, core->seek({"orders", 0}, Start::at(at_ms(-7)))));
  EXPECT_EQ(core->positions().at({"orders", 0}), 0) << "before 1970 is before everything";
  ASSERT_TRUE(run(simulator, core->seek({"orders", 0}, Start::at(at_ms(2000)))));
  EXPECT_EQ(core->positions().at({"orders", 0}), 8);
}

/// The last of several questions has no time left for its answer.
TEST_F(ConsumerTest, WhyThereAreNoOffsetsIsSaidByWhoeverAnswered) {
  broker->add_topic("orders", 1);
  start(consumer_config());
  broker->refuse_offsets = [&] {
    broker->silent = true;
    return Status::of(WireError::partition_offline, "its disk is away", broker->broker_id);
  };
  const auto none = run(simulator, core->offsets_for_times({{{"orders", 0}, at_ms(1)}}));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Errc::partition_offline) << to_string(none.error());
  EXPECT_GE(broker->offset_requests, 1);
}

TEST_F(ConsumerTest, OffsetsForTimesTellWhatIsThere) {
  broker->add_topic("orders", 1);
  broker->inject("orders", 0, make_batch({"a", "b"}, 0, model::Codec::none, 1000), 2);
  broker->inject("orders", 0, make_batch({"c"}, 2, model::Codec::none, 1010), 1);
  start(consumer_config());
  const TopicPartition partition{"orders", 0};
  const auto found = run(simulator, core->offsets_for_times({{partition, at_ms(1001)}}));
  ASSERT_TRUE(found) << to_string(found.error());
  EXPECT_EQ(found->at(partition).offset, 2);
  EXPECT_EQ(found->at(partition).append_time, at_ms(1010));
  const auto none = run(simulator, core->offsets_for_times({{partition, at_ms(1011)}}));
  ASSERT_TRUE(none);
  EXPECT_EQ(none->at(partition).offset, 3);
  EXPECT_EQ(none->at(partition).append_time, std::nullopt);
  const auto unknown = run(simulator, core->offsets_for_times({{{"orders", 7}, at_ms(1)}}));
  EXPECT_EQ(unknown.error().code, Errc::unknown_partition);
}

}  // namespace
}  // namespace mq::testing
