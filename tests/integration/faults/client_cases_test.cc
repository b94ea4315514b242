// What an application sees when brokers, networks and sizes do not behave.

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <thread>

#include "integration/faults/broker_process.h"
#include "integration/faults/client_support.h"
#include "integration/faults/relay.h"

namespace mq::faults {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

void create_topic(const std::string& address, const std::string& name,
                  std::map<std::string, std::string> config = {}) {
  auto admin = must(Admin::create(quiet<ClientConfig>(address)));
  NewTopic topic(name);
  topic.partitions = 1;
  topic.config = std::move(config);
  for (const auto& [item, created] : admin.create_topics({topic}))
    ASSERT_TRUE(created) << item << ": " << to_string(created.error());
}

std::vector<std::string> read_values(const std::string& address, const std::string& topic,
                                     ConsumerConfig config = quiet<ConsumerConfig>("")) {
  config.bootstrap = {address};
  auto consumer = must(Consumer::create(std::move(config)));
  const TopicPartition partition{topic, 0};
  must(consumer.assign({{partition, Start{}}}).has_value() ? Result<int>(0) : Result<int>(Error{}));
  const auto end = must(consumer.offsets()).at(partition).end;
  std::vector<std::string> values;
  const auto deadline = Clock::now() + 30s;
  while (static_cast<std::int64_t>(values.size()) < end && Clock::now() < deadline) {
    for (const auto& record : must(consumer.poll(500ms)))
      values.emplace_back(as_text(*record.value));
  }
  return values;
}

/// Results by kind.
struct Results {
  std::atomic<std::uint64_t> delivered{0};
  std::atomic<std::uint64_t> failed{0};
  Producer::OnDelivery counter() {
    return [this](const Result<Delivery>& result) { ++(result ? delivered : failed); };
  }
  [[nodiscard]] std::uint64_t all() const { return delivered + failed; }
};

class ClientCases : public ::testing::Test {
 protected:
  ClientCases() { broker.start(); }
  BrokerProcess broker;
};

// CLI-4
TEST_F(ClientCases, AFullBufferIsSaidAndFlushTellsWhatRemains) {
  create_topic(broker.address(), "t");
  auto config = quiet<ProducerConfig>(broker.address());
  config.buffer_bytes = 256 << 10;
  config.on_full = OnFull::fail;
  auto producer = must(Producer::create(config));
  ASSERT_TRUE(producer.send_sync(Record("t").value("warm")));
  broker.pause();
  Results results;
  std::uint64_t accepted = 0;
  std::uint64_t full = 0;
  for (int i = 0; i < 20'000; ++i) {
    const auto sent = producer.send(Record("t").value(std::string(100, 'x')), results.counter());
    if (sent) {
      ++accepted;
    } else {
      EXPECT_EQ(sent.error().code, Errc::queue_full);
      EXPECT_TRUE(sent.error().retriable);
      ++full;
    }
  }
  EXPECT_GT(accepted, 100u);
  EXPECT_GT(full, 10'000u);
  const auto unflushed = producer.flush(300ms);
  ASSERT_FALSE(unflushed);
  EXPECT_EQ(unflushed.error().code, Errc::timed_out);
  EXPECT_NE(unflushed.error().message.find(std::to_string(producer.pending())), std::string::npos)
      << unflushed.error().message;
  broker.resume();
  EXPECT_TRUE(producer.flush(60s));
  EXPECT_EQ(results.delivered, accepted);
  EXPECT_EQ(results.failed, 0u);
  EXPECT_EQ(producer.pending(), 0u);
}

// CLI-1
TEST_F(ClientCases, DestroyingAProducerReportsEveryUndeliveredRecord) {
  create_topic(broker.address(), "t");
  Results results;
  std::uint64_t accepted = 0;
  {
    auto config = quiet<ProducerConfig>(broker.address());
    config.close_timeout = 300ms;
    auto producer = must(Producer::create(config));
    ASSERT_TRUE(producer.send_sync(Record("t").value("warm")));
    broker.pause();
    for (int i = 0; i < 5000; ++i) {
      if (producer.send(Record("t").value("v"), results.counter())) ++accepted;
    }
  }
  broker.resume();
  EXPECT_EQ(accepted, 5000u);
  EXPECT_EQ(results.all(), accepted);
  EXPECT_GT(results.failed, 0u);
}

TEST_F(ClientCases, OneOversizedRecordFailsAlone) {
  create_topic(broker.address(), "t", {{"batch.bytes", "100KiB"}});
  auto config = quiet<ProducerConfig>(broker.address());
  config.linger = 50ms;
  config.compression = Compression::none;
  auto producer = must(Producer::create(config));
  std::vector<Future<Delivery>> sent;
  const auto send_small = [&](int from) {
    for (int i = from; i < from + 50; ++i)
      sent.push_back(producer.send(Record("t").value(std::to_string(i))));
  };
  send_small(0);
  auto too_large = producer.send(Record("t").value(std::string(150 << 10, 'x')));
  send_small(50);
  const auto refused = std::move(too_large).get();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::record_too_large);
  EXPECT_NE(refused.error().message.find("102400"), std::string::npos) << refused.error().message;
  for (auto& future : sent) EXPECT_TRUE(std::move(future).get());
  const auto values = read_values(broker.address(), "t");
  ASSERT_EQ(values.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(values[static_cast<std::size_t>(i)], std::to_string(i));
}

// the largest record that is taken also comes back; one byte more is refused.
TEST_F(ClientCases, ExactlyTheLimitPasses) {
  create_topic(broker.address(), "t", {{"batch.bytes", "100KiB"}});
  auto config = quiet<ProducerConfig>(broker.address());
  config.compression = Compression::none;
  auto producer = must(Producer::create(config));
  std::size_t good = 90 << 10;
  std::size_t bad = 110 << 10;
  while (bad - good > 1) {
    const std::size_t middle = (good + bad) / 2;
    const auto sent = producer.send_sync(Record("t").value(std::string(middle, 'x')));
    if (!sent) {
      EXPECT_EQ(sent.error().code, Errc::record_too_large);
    }
    (sent ? good : bad) = middle;
  }
  EXPECT_GT(good, (100 << 10) - 200u);
  EXPECT_LT(good, 100u << 10);
  std::size_t largest = 0;
  for (const auto& value : read_values(broker.address(), "t"))
    largest = std::max(largest, value.size());
  EXPECT_EQ(largest, good);
}

TEST_F(ClientCases, ARecordLargerThanTheFetchLimitIsDelivered) {
  create_topic(broker.address(), "t");
  auto config = quiet<ProducerConfig>(broker.address());
  config.compression = Compression::none;
  auto producer = must(Producer::create(config));
  std::vector<std::string> values;
  for (int i = 0; i < 40; ++i) {
    values.emplace_back(i == 20 ? 900 << 10 : 1 << 10, static_cast<char>('a' + i % 26));
    ASSERT_TRUE(producer.send_sync(Record("t").value(values.back())));
  }
  auto consumer_config = quiet<ConsumerConfig>(broker.address());
  consumer_config.fetch_bytes = 64 << 10;
  consumer_config.prefetch_bytes = 64 << 10;
  EXPECT_TRUE(read_values(broker.address(), "t", consumer_config) == values);
}

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

TEST_F(ClientCases, ClientsWithoutABrokerAreQuietAndComeBack) {
  constexpr int kClients = 20;
  create_topic(broker.address(), "t");
  Relay relay(broker.port());
  std::atomic<int> log_lines{0};
  std::vector<Producer> producers;
  for (int i = 0; i < kClients; ++i) {
    auto config = quiet<ProducerConfig>("127.0.0.1:" + std::to_string(relay.port()));
    config.log = [&log_lines](LogLevel level, std::string_view) {
      if (level >= LogLevel::warning) ++log_lines;
    };
    producers.push_back(must(Producer::create(config)));
    ASSERT_TRUE(producers.back().send_sync(Record("t").value("warm")));
  }
  Results results;
  broker.kill9();
  relay.set(Relay::Mode::accept_and_close);
  for (auto& producer : producers)
    ASSERT_TRUE(producer.send(Record("t").value("v"), results.counter()));
  std::this_thread::sleep_for(4s);  // the first attempts come quickly
  const int attempts_before = relay.accepted();
  const double cpu_before = cpu_seconds();
  std::this_thread::sleep_for(5s);
  EXPECT_LE(relay.accepted() - attempts_before, kClients * 2 * 5);
  EXPECT_LT(cpu_seconds() - cpu_before, kClients * 0.02 * 5);
  EXPECT_LE(log_lines, 2 * 2 * kClients) << "a line per address and ten seconds";
  relay.set(Relay::Mode::pass);
  broker.start();
  for (auto& producer : producers) EXPECT_TRUE(producer.flush(10s));
  EXPECT_EQ(results.delivered, static_cast<std::uint64_t>(kClients));
}

class IdleCases : public ::testing::Test {
 protected:
  IdleCases() { broker.start(); }
  BrokerProcess broker{"\n[limits]\nidle_timeout = \"1s\"\n"};

  std::uint32_t connections() {
    auto admin = must(Admin::create(quiet<ClientConfig>(broker.address())));
    for (auto& [id, description] : admin.describe_brokers())
      return must(std::move(description)).connections;
    return 0;
  }
};

TEST_F(IdleCases, ASendAfterAnIdleSpellIsDeliveredOnceAndAtOnce) {
  create_topic(broker.address(), "t");
  auto producer = must(Producer::create(quiet<ProducerConfig>(broker.address())));
  ASSERT_TRUE(producer.send_sync(Record("t").value("before")));
  std::this_thread::sleep_for(2500ms);
  const auto start = Clock::now();
  const auto sent = producer.send_sync(Record("t").value("after"));
  ASSERT_TRUE(sent) << to_string(sent.error());
  EXPECT_LT(Clock::now() - start, 1s);
  EXPECT_EQ(read_values(broker.address(), "t"), (std::vector<std::string>{"before", "after"}));
}

TEST_F(IdleCases, ASilentlyDroppedConnectionIsGivenUpAndTheRecordArrives) {
  create_topic(broker.address(), "t");
  Relay relay(broker.port());
  auto config = quiet<ProducerConfig>("127.0.0.1:" + std::to_string(relay.port()));
  config.request_timeout = 2s;
  auto producer = must(Producer::create(config));
  // The advertised address leads around the relay, so what is dropped here is the broker itself.
  ASSERT_TRUE(producer.send_sync(Record("t").value("before")));
  relay.set(Relay::Mode::swallow);
  broker.pause();
  std::thread waker([this] {
    std::this_thread::sleep_for(3s);
    broker.resume();
  });
  const auto start = Clock::now();
  const auto sent = producer.send_sync(Record("t").value("after"));
  waker.join();
  ASSERT_TRUE(sent) << to_string(sent.error());
  EXPECT_LT(Clock::now() - start, 8s);
  const auto values = read_values(broker.address(), "t");
  ASSERT_GE(values.size(), 2u);
  EXPECT_EQ(values.front(), "before");
  for (std::size_t i = 1; i < values.size(); ++i) EXPECT_EQ(values[i], "after");
  EXPECT_TRUE(values.size() == 2 || sent->attempts > 1);
  std::this_thread::sleep_for(2500ms);
  EXPECT_LE(connections(), 3u);
}

constexpr int kCloseRounds = 20;
constexpr auto kCloseLimit = 10s;

TEST_F(ClientCases, ClosingAProducerEndsWhateverTheBrokerDoes) {
  create_topic(broker.address(), "t");
  for (int round = 0; round < kCloseRounds; ++round) {
    auto producer = must(Producer::create(quiet<ProducerConfig>(broker.address())));
    Results results;
    std::uint64_t accepted = 0;
    ASSERT_TRUE(producer.send_sync(Record("t").value("warm")));
    if (round % 2 == 1) broker.pause();
    for (int i = 0; i < 2000; ++i) {
      if (producer.send(Record("t").value("v"), results.counter())) ++accepted;
    }
    const auto start = Clock::now();
    (void)producer.close(100ms);
    (void)producer.close(100ms);  // again: nothing
    EXPECT_LT(Clock::now() - start, kCloseLimit);
    EXPECT_EQ(results.all(), accepted);
    if (round % 2 == 1) broker.resume();
  }
}

TEST_F(ClientCases, ClosingFromACallbackIsRefusedNotADeadlock) {
  create_topic(broker.address(), "t");
  auto producer = must(Producer::create(quiet<ProducerConfig>(broker.address())));
  std::atomic<Errc> answer{Errc::ok};
  std::atomic<bool> called{false};
  ASSERT_TRUE(producer.send(Record("t").value("v"), [&](const Result<Delivery>&) {
    const auto closed = producer.close(100ms);
    answer = closed ? Errc::ok : closed.error().code;
    called = true;
  }));
  EXPECT_TRUE(producer.flush(10s));
  EXPECT_TRUE(called);
  EXPECT_EQ(answer, Errc::invalid_argument);
  EXPECT_TRUE(producer.close(10s));
}

TEST_F(ClientCases, ClosingAConsumerEndsWhateverTheBrokerDoes) {
  create_topic(broker.address(), "t");
  for (int round = 0; round < kCloseRounds; ++round) {
    auto consumer = must(Consumer::create(quiet<ConsumerConfig>(broker.address())));
    ASSERT_TRUE(consumer.assign({{TopicPartition{"t", 0}, Start{}}}));
    if (round % 2 == 1) broker.pause();
    std::thread other([&consumer] { consumer.wakeup(); });
    (void)consumer.poll(2s);
    other.join();
    const auto start = Clock::now();
    (void)consumer.close(100ms);
    (void)consumer.close(100ms);
    EXPECT_LT(Clock::now() - start, kCloseLimit);
    if (round % 2 == 1) broker.resume();
  }
}

// brokers that are away, or accept and say nothing, while a client connects.
TEST_F(ClientCases, CreatingAClientWithoutABrokerEndsWithOneClearError) {
  auto config = quiet<ProducerConfig>(broker.address());
  config.connect_timeout = 1s;
  broker.pause();
  auto start = Clock::now();
  auto producer = Producer::create(config);
  EXPECT_FALSE(producer);
  EXPECT_LT(Clock::now() - start, 4s);
  broker.resume();
  broker.kill9();
  start = Clock::now();
  producer = Producer::create(config);
  ASSERT_FALSE(producer);
  EXPECT_EQ(producer.error().code, Errc::unreachable);
  EXPECT_NE(to_string(producer.error()).find(broker.address()), std::string::npos)
      << to_string(producer.error());
  EXPECT_LT(Clock::now() - start, 4s);
}

}  // namespace
}  // namespace mq::faults
