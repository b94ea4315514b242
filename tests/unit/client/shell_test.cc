#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "base/real/asio_network.h"
#include "base/real/real_runtime.h"
#include "fake_broker.h"
#include "mq/mq.h"

/// The blocking shells, with real threads and sockets, against a fake broker.
namespace mq::testing {
namespace {

using namespace std::chrono_literals;

/// A fake broker with a thread of its own on a free port of the loopback.
class LiveBroker {
 public:
  LiveBroker() : network_(runtime_), thread_([this] { runtime_.run(); }) {
    on_thread([this] {
      broker_ = std::make_unique<FakeBroker>(runtime_, network_, base::Endpoint{"127.0.0.1", 0},
                                             base::Endpoint{"127.0.0.1", 0});
      address_ = broker_->address().text();
    });
  }
  ~LiveBroker() {
    std::promise<void> stopped;
    runtime_.spawn("stop", stop(stopped));
    stopped.get_future().wait();
    runtime_.stop();
    thread_.join();
    broker_.reset();
  }
  /// Runs `work` on the broker's thread.
  void on_thread(const std::function<void()>& work) {
    std::promise<void> done;
    runtime_.post([&] {
      work();
      done.set_value();
    });
    done.get_future().wait();
  }
  FakeBroker& operator*() { return *broker_; }
  FakeBroker* operator->() { return broker_.get(); }
  [[nodiscard]] const std::string& address() const { return address_; }

 private:
  asio::awaitable<void> stop(std::promise<void>& stopped) {
    co_await broker_->stop();
    stopped.set_value();
  }

  base::RealRuntime runtime_;
  base::AsioNetwork network_;
  std::unique_ptr<FakeBroker> broker_;
  std::string address_;
  std::thread thread_;
};

class ShellTest : public ::testing::Test {
 protected:
  ShellTest() {
    broker.on_thread([this] { broker->add_topic("orders", 1); });
  }
  template <class Config>
  Config config() {
    Config made;
    made.bootstrap = {broker.address()};
    made.log = [this](LogLevel level, std::string_view line) {
      const std::lock_guard lock(mutex);
      if (level >= LogLevel::warning) log.emplace_back(line);
    };
    return made;
  }
  void silence(bool silent) {
    broker.on_thread([&] { broker->silent = silent; });
  }

  std::mutex mutex;  // guards log
  std::vector<std::string> log;
  LiveBroker broker;
};

TEST_F(ShellTest, SendsSyncAndReadsItBack) {
  auto producer = Producer::create(config<ProducerConfig>()).value();
  const auto delivery = producer.send_sync(Record("orders").key("42").value("paid"));
  ASSERT_TRUE(delivery) << to_string(delivery.error());
  EXPECT_EQ(delivery->offset, 0);
  EXPECT_EQ(delivery->topic, "orders");
  EXPECT_TRUE(producer.close(5s));

  auto consumer = Consumer::create(config<ConsumerConfig>()).value();
  consumer.assign({{{"orders", 0}, Start{Start::earliest}}}).value();
  const auto batch = consumer.poll(5s);
  ASSERT_TRUE(batch);
  ASSERT_EQ(batch->size(), 1u);
  EXPECT_EQ(as_text(*(*batch)[0].key), "42");
  EXPECT_EQ(as_text(*(*batch)[0].value), "paid");
  const auto empty = consumer.poll(20ms);
  ASSERT_TRUE(empty);
  EXPECT_TRUE(empty->empty());
  const auto range = consumer.offsets().value();
  const TopicPartition name{"orders", 0};
  EXPECT_EQ(range.at(name).end, 1);
}

TEST_F(ShellTest, CallbacksRunInOrderOnOneThreadThatIsNotOurs) {
  auto producer = Producer::create(config<ProducerConfig>()).value();
  std::vector<int> seen;  // the callback thread only, until close()
  std::set<std::thread::id> threads;
  for (int i = 0; i < 1000; ++i) {
    producer
        .send(Record("orders").value(std::to_string(i)),
              [&, i](Result<Delivery> result) {
                EXPECT_TRUE(result);
                seen.push_back(i);
                threads.insert(std::this_thread::get_id());
                if (i % 100 == 0) throw std::runtime_error("from the application");
              })
        .value();
  }
  ASSERT_TRUE(producer.flush(10s));
  EXPECT_EQ(producer.pending(), 0u);
  ASSERT_TRUE(producer.close(10s));
  ASSERT_EQ(seen.size(), 1000u);
  EXPECT_TRUE(std::ranges::is_sorted(seen));
  ASSERT_EQ(threads.size(), 1u);
  EXPECT_FALSE(threads.contains(std::this_thread::get_id()));
}

TEST_F(ShellTest, HandlesAndCookies) {
  std::atomic<std::uint64_t> sum{0};
  auto made = config<ProducerConfig>();
  made.on_delivery = [&](const DeliveryRange& range) {
    for (const auto cookie : range.cookies) sum += cookie;
  };
  auto producer = Producer::create(made).value();
  const auto orders = producer.topic("orders").value();
  EXPECT_EQ(orders.partitions(), 1u);
  for (std::uint64_t i = 1; i <= 10'000; ++i)
    producer.send(orders, as_bytes("key"), as_bytes("value"), {}, i).value();
  ASSERT_TRUE(producer.flush(10s));
  EXPECT_EQ(sum, 50'005'000u);
  EXPECT_EQ(producer.stats().records_delivered, 10'000u);
}

TEST_F(ShellTest, FullBufferBlocksOrFailsAsChosen) {
  auto made = config<ProducerConfig>();
  made.buffer_bytes = 20'000;
  made.compression = Compression::none;
  made.on_full = OnFull::fail;
  auto failing = Producer::create(made).value();
  made.on_full = OnFull::block;
  auto blocking = Producer::create(made).value();
  const std::string value(1000, 'x');
  const auto one = failing.topic("orders").value();
  const auto two = blocking.topic("orders").value();
  silence(true);
  int accepted = 0;
  Result<void> sent;
  while ((sent = failing.send(one, std::nullopt, as_bytes(value)))) ++accepted;
  EXPECT_EQ(sent.error().code, Errc::queue_full);
  EXPECT_LE(accepted, 20);
  while (blocking.try_send(two, std::nullopt, as_bytes(value))) {
  }
  std::thread later([&] {
    std::this_thread::sleep_for(50ms);
    broker.on_thread([&] {
      broker->silent = false;
      broker->break_connections();
    });
  });
  EXPECT_TRUE(blocking.send(two, std::nullopt, as_bytes(value)));
  later.join();
  EXPECT_TRUE(blocking.flush(10s));
  EXPECT_TRUE(failing.flush(10s));
}

TEST_F(ShellTest, FlushTellsHowManyRemainAndCloseFailsThem) {
  auto producer = Producer::create(config<ProducerConfig>()).value();
  std::atomic<int> failed{0};
  producer.send_sync(Record("orders").value("first")).value();
  silence(true);
  for (int i = 0; i < 100; ++i) {
    producer
        .send(Record("orders").value("x"),
              [&](Result<Delivery> result) {
                if (!result && result.error().code == Errc::closed) ++failed;
              })
        .value();
  }
  const auto flushed = producer.flush(50ms);
  ASSERT_FALSE(flushed);
  EXPECT_EQ(flushed.error().code, Errc::timed_out);
  EXPECT_NE(flushed.error().message.find("100 records"), std::string::npos);
  const auto closed = producer.close(50ms);
  ASSERT_FALSE(closed);
  EXPECT_EQ(failed, 100);
  EXPECT_TRUE(producer.close(50ms));
  EXPECT_EQ(producer.send(Record("orders").value("late"), nullptr).error().code, Errc::closed);
}

TEST_F(ShellTest, DestructorReportsEachRecordAndLogsHowMany) {
  std::atomic<int> failed{0};
  {
    auto made = config<ProducerConfig>();
    made.close_timeout = 50ms;
    auto producer = Producer::create(made).value();
    producer.send_sync(Record("orders").value("first")).value();
    silence(true);
    for (int i = 0; i < 10; ++i)
      producer.send(Record("orders").value("x"), [&](Result<Delivery>) { ++failed; }).value();
  }
  EXPECT_EQ(failed, 10);
  ASSERT_FALSE(log.empty());
  EXPECT_NE(log.back().find("10 records"), std::string::npos);
}

TEST_F(ShellTest, CloseFromACallbackIsRefusedAndDestructionThereEnds) {
  auto producer = std::make_unique<Producer>(Producer::create(config<ProducerConfig>()).value());
  std::promise<Errc> code;
  producer
      ->send(Record("orders").value("x"),
             [&](Result<Delivery>) { code.set_value(producer->close(1s).error().code); })
      .value();
  EXPECT_EQ(code.get_future().get(), Errc::invalid_argument);
  std::promise<void> destroyed;
  std::promise<void> returned;  // no other call may run on what is destroyed
  producer
      ->send(Record("orders").value("y"),
             [&, sent = returned.get_future().share()](Result<Delivery>) {
               sent.wait();
               producer.reset();
               destroyed.set_value();
             })
      .value();
  returned.set_value();
  EXPECT_EQ(destroyed.get_future().wait_for(10s), std::future_status::ready);
}

TEST_F(ShellTest, BlockingCallsWorkInsideCallbacks) {
  auto producer = Producer::create(config<ProducerConfig>()).value();
  std::promise<std::int64_t> inner;
  producer
      .send(Record("orders").value("x"),
            [&](Result<Delivery>) {
              const auto sent = producer.send_sync(Record("orders").value("y"));
              EXPECT_TRUE(producer.flush(5s));
              inner.set_value(sent ? sent->offset : -1);
            })
      .value();
  EXPECT_EQ(inner.get_future().get(), 1);
}

TEST_F(ShellTest, FuturesContinueOnTheCallbackThread) {
  auto producer = Producer::create(config<ProducerConfig>()).value();
  std::promise<std::int64_t> continued;
  producer.send(Record("orders").value("x")).then([&](Result<Delivery> result) {
    continued.set_value(result->offset);
  });
  EXPECT_EQ(continued.get_future().get(), 0);
  silence(true);
  auto late = producer.send(Record("orders").value("y"));
  EXPECT_FALSE(std::move(late).get_for(20ms));
  (void)producer.close(0ms);
  EXPECT_EQ(std::move(late).get().error().code, Errc::closed);
}

TEST_F(ShellTest, CloseFromASecondThreadWhileSendingEnds) {
  for (int round = 0; round < 20; ++round) {
    auto producer = Producer::create(config<ProducerConfig>()).value();
    const auto orders = producer.topic("orders").value();
    std::thread closer([&] {
      std::this_thread::sleep_for(1ms);
      (void)producer.close(5s);
    });
    while (producer.send(orders, std::nullopt, as_bytes("value"))) {
    }
    closer.join();
    EXPECT_EQ(producer.pending(), 0u);
  }
}

TEST_F(ShellTest, PollEndsEarlyByWakeupAndClose) {
  auto consumer = Consumer::create(config<ConsumerConfig>()).value();
  consumer.assign({{{"orders", 0}, Start{}}}).value();
  std::thread waker([&] {
    std::this_thread::sleep_for(20ms);
    consumer.wakeup();
  });
  const auto woken = consumer.poll(20s);
  waker.join();
  ASSERT_TRUE(woken);
  EXPECT_TRUE(woken->empty());
  EXPECT_TRUE(consumer.close(5s));
  EXPECT_EQ(consumer.poll(1s).error().code, Errc::closed);
  EXPECT_TRUE(consumer.close(5s));
}

// The loops of both clients go back and forth between their I/O threads and this thread all the
// time.
TEST_F(ShellTest, RecordsComeOneByOneWhileOthersWakeThePollAndCallsAreMixedIn) {
  auto producer = Producer::create(config<ProducerConfig>()).value();
  auto consumer = Consumer::create(config<ConsumerConfig>()).value();
  const TopicPartition name{"orders", 0};
  consumer.assign({{name, Start{}}}).value();
  std::atomic<bool> enough{false};
  std::thread waker([&] {
    while (!enough) {
      consumer.wakeup();
      std::this_thread::sleep_for(100us);
    }
  });
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(producer.send_sync(Record("orders").value(std::to_string(i))));
    Batch batch;
    while (batch.empty()) batch = consumer.poll(20s).value();
    ASSERT_EQ(batch.size(), 1u);
    ASSERT_EQ(as_text(*batch[0].value), std::to_string(i));
    if (i % 50 == 0) {
      ASSERT_EQ(consumer.offsets().value().at(name).end, i + 1);
      ASSERT_TRUE(consumer.pause(std::span(&name, 1)));
      ASSERT_TRUE(consumer.resume(std::span(&name, 1)));
    }
    if (i % 70 == 0) {
      ASSERT_TRUE(consumer.seek(name, Start::at(i)));
      Batch again;
      while (again.empty()) again = consumer.poll(20s).value();
      ASSERT_EQ(again[0].offset, i);
    }
  }
  enough = true;
  waker.join();
}

TEST_F(ShellTest, CloseFromASecondThreadEndsAPoll) {
  for (int round = 0; round < 20; ++round) {
    auto consumer = Consumer::create(config<ConsumerConfig>()).value();
    consumer.assign({{{"orders", 0}, Start{}}}).value();
    std::promise<void> polling;
    std::thread reader([&] {
      polling.set_value();
      const auto polled = consumer.poll(20s);
      ASSERT_FALSE(polled);
      EXPECT_EQ(polled.error().code, Errc::closed);
    });
    polling.get_future().wait();
    EXPECT_TRUE(consumer.close(5s));
    reader.join();
  }
}

TEST_F(ShellTest, ConnectionsAreKeptWhileTheApplicationDoesNotPoll) {
  auto consumer = Consumer::create(config<ConsumerConfig>()).value();
  const TopicPartition name{"orders", 0};
  consumer.assign({{name, Start{}}}).value();
  ASSERT_TRUE(consumer.poll(1ms));  // leaves the loop on loan
  auto producer = Producer::create(config<ProducerConfig>()).value();
  broker.on_thread([&] { broker->break_connections(); });
  ASSERT_TRUE(producer.send_sync(Record("orders").value("x")));
  // The record is fetched over a new connection though nobody polls: it is there at once.
  Batch batch;
  const auto until = std::chrono::steady_clock::now() + 20s;
  while (batch.empty() && std::chrono::steady_clock::now() < until) {
    auto polled = consumer.poll(0ms);
    ASSERT_TRUE(polled || polled.error().retriable);  // the connection that is gone
    if (polled) batch = *std::move(polled);
  }
  EXPECT_EQ(batch.size(), 1u);
}

TEST_F(ShellTest, ForEverIsATimeToWait) {
  auto producer = Producer::create(config<ProducerConfig>()).value();
  EXPECT_TRUE(producer.send(Record("orders").value("x"), {}));
  EXPECT_TRUE(producer.flush(Duration::max()));
  auto sent = producer.send(Record("orders").value("y"));
  EXPECT_TRUE(std::move(sent).get_for(Duration::max()).has_value());
  EXPECT_TRUE(producer.close(Duration::max()));

  auto consumer = Consumer::create(config<ConsumerConfig>()).value();
  consumer.assign({{{"orders", 0}, Start{Start::latest}}}).value();
  std::thread waker([&] {
    std::this_thread::sleep_for(50ms);
    consumer.wakeup();
  });
  const auto before = std::chrono::steady_clock::now();
  EXPECT_TRUE(consumer.poll(Duration::max()).value().empty());
  EXPECT_GE(std::chrono::steady_clock::now() - before, 40ms);
  waker.join();
  EXPECT_TRUE(consumer.poll(Duration::min()).value().empty());
}

TEST_F(ShellTest, PollTellsWhyNothingComes) {
  auto consumer = Consumer::create(config<ConsumerConfig>()).value();
  consumer.assign({{{"orders", 0}, Start{}}}).value();
  broker.on_thread([&] {
    broker->close_at_once = true;
    broker->break_connections();
  });
  Result<Batch> polled = consumer.poll(300ms);
  if (polled) polled = consumer.poll(300ms);
  ASSERT_FALSE(polled);
  EXPECT_TRUE(polled.error().retriable);
}

TEST(ShellCreate, NobodyThereIsOneClearErrorInTime) {
  ProducerConfig config;
  config.bootstrap = {"127.0.0.1:1"};
  config.connect_timeout = 200ms;
  config.log = [](LogLevel, std::string_view) {};
  const auto before = std::chrono::steady_clock::now();
  const auto producer = Producer::create(config);
  ASSERT_FALSE(producer);
  EXPECT_EQ(producer.error().code, Errc::unreachable);
  EXPECT_EQ(producer.error().message, "cannot reach 127.0.0.1:1: connection refused");
  EXPECT_LT(std::chrono::steady_clock::now() - before, 5s);
}

TEST(ShellCreate, EveryProblemOfAConfigurationIsTold) {
  ProducerConfig config;
  config.bootstrap = {"[::1]:9500", "host:99999", ""};
  config.client_id = std::string(200, 'x');
  config.batch_bytes = 10;
  config.delivery_timeout = 0ms;
  config.linger = Duration::max();
  EXPECT_EQ(config.validate().size(), 6u);
  const auto producer = Producer::create(config);
  ASSERT_FALSE(producer);
  EXPECT_EQ(producer.error().code, Errc::invalid_client_config);
  EXPECT_NE(producer.error().message.find("batch_bytes"), std::string::npos);
}

TEST(Records, BuiltStepByStepKeepEverything) {
  Record record("orders");
  for (int i = 0; i < 3; ++i) record = std::move(record).header("h" + std::to_string(i), "v");
  record = std::move(record).key("k");
  EXPECT_EQ(record.topic(), "orders");
  EXPECT_EQ(record.headers().size(), 3u);
  EXPECT_EQ(record.key()->text(), "k");
}

TEST(Results, ValueOfAFailedOneThrowsWithTheError) {
  Error error;
  error.code = Errc::unknown_topic;
  error.message = "there is no topic 'ordres'";
  Result<int> failed(error);
  try {
    (void)std::move(failed).value();
    FAIL();
  } catch (const Exception& e) {
    EXPECT_EQ(e.error().code, Errc::unknown_topic);
    EXPECT_NE(std::string(e.what()).find("UNKNOWN_TOPIC"), std::string::npos);
  }
  EXPECT_EQ(errc_name(Errc::queue_full), "QUEUE_FULL");
  EXPECT_EQ(errc_name(static_cast<Errc>(777)), "ERROR_777");
}

}  // namespace
}  // namespace mq::testing
