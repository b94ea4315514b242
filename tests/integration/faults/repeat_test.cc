// Answers that are lost on the way, with and without a kill -9: nothing is stored twice, nothing is
// lost, and every record is told where it is.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <iostream>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "integration/faults/broker_process.h"
#include "integration/faults/relay.h"
#include "mq/mq.h"

namespace mq::faults {
namespace {

using namespace std::chrono_literals;

constexpr const char* kTopics[] = {"on-disk", "in-memory"};

int rounds() {
  const char* const text = std::getenv("MQ_FAULT_ROUNDS");
  return (text == nullptr ? 50 : std::atoi(text)) / 3 + 1;
}

void create_topics(const std::string& address) {
  ClientConfig config;
  config.bootstrap = {address};
  auto admin = Admin::create(config);
  ASSERT_TRUE(admin) << to_string(admin.error());
  std::vector<NewTopic> topics;
  for (const std::string name : kTopics) {
    topics.emplace_back(name);
    topics.back().partitions = 1;
    topics.back().config = {{"durability", name == "on-disk" ? "disk" : "memory"},
                            {"segment.bytes", "1MiB"}};
  }
  for (const auto& [name, created] : admin->create_topics(topics))
    ASSERT_TRUE(created) << name << ": " << to_string(created.error());
}

/// Sends "<n>:<padding>" with rising n to both topics until told to stop.
class Sender {
 public:
  explicit Sender(const std::string& address) {
    ProducerConfig config;
    config.bootstrap = {address};
    config.linger = 1ms;
    config.request_timeout = 400ms;
    config.delivery_timeout = 120s;
    config.batch_bytes = 8 << 10;
    config.log = [](LogLevel, std::string_view) {};
    auto producer = Producer::create(std::move(config));
    if (!producer) throw std::runtime_error(to_string(producer.error()));
    producer_ = std::make_unique<Producer>(std::move(*producer));
    thread_ = std::thread([this] { run(); });
  }
  ~Sender() { finish(); }

  void finish() {
    if (!thread_.joinable()) return;
    stop_ = true;
    thread_.join();
    EXPECT_TRUE(producer_->close(120s));
    EXPECT_EQ(results_, accepted_);  // CLI-1
    EXPECT_EQ(failed_, 0u);
  }
  /// Number by offset, as the answers said.
  [[nodiscard]] const std::map<std::int64_t, std::uint64_t>& delivered(const std::string& topic) {
    return delivered_[topic];
  }
  [[nodiscard]] std::uint64_t accepted() const { return accepted_; }
  [[nodiscard]] ProducerStats stats() const { return producer_->stats(); }

 private:
  void run() {
    for (std::uint64_t n = 0; !stop_; ++n) {
      if (producer_->pending() > 2000) std::this_thread::sleep_for(1ms);
      const std::string topic = kTopics[n % 2];
      const std::string value = std::to_string(n) + ":" + std::string(n * 7919 % 700, 'x');
      const auto sent =
          producer_->send(Record(topic).value(value), [this, n, topic](Result<Delivery> result) {
            std::lock_guard lock(mutex_);
            ++results_;
            if (!result) {
              ++failed_;
              std::cerr << "record " << n << ": " << to_string(result.error()) << "\n";
            } else {
              delivered_[topic][result->offset] = n;
            }
          });
      if (sent) ++accepted_;
      if (n % 16 == 0) std::this_thread::sleep_for(500us);
    }
  }

  std::unique_ptr<Producer> producer_;
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> accepted_{0};
  std::mutex mutex_;
  std::map<std::string, std::map<std::int64_t, std::uint64_t>> delivered_;
  std::uint64_t results_ = 0;
  std::uint64_t failed_ = 0;
  std::thread thread_;
};

std::vector<std::uint64_t> read_numbers(const std::string& address, const std::string& topic) {
  ConsumerConfig config;
  config.bootstrap = {address};
  auto consumer = Consumer::create(std::move(config));
  if (!consumer) throw std::runtime_error(to_string(consumer.error()));
  const TopicPartition partition{topic, 0};
  EXPECT_TRUE(consumer->assign({{partition, Start{}}}));
  const auto ends = consumer->offsets();
  if (!ends) throw std::runtime_error(to_string(ends.error()));
  const auto end = ends->at(partition).end;
  std::vector<std::uint64_t> numbers;
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  while (static_cast<std::int64_t>(numbers.size()) < end &&
         std::chrono::steady_clock::now() < deadline) {
    const auto batch = consumer->poll(1s);
    if (!batch) throw std::runtime_error(to_string(batch.error()));
    for (const auto& record : *batch)
      numbers.push_back(std::stoull(std::string(as_text(*record.value))));
  }
  return numbers;
}

/// IDM-2, CLI-2: each number once, rising, at the offset that its answer named.
void check(const std::vector<std::uint64_t>& found,
           const std::map<std::int64_t, std::uint64_t>& delivered) {
  ASSERT_EQ(found.size(), delivered.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto at = delivered.find(static_cast<std::int64_t>(i));
    ASSERT_TRUE(at != delivered.end()) << "nobody was told of offset " << i;
    ASSERT_EQ(found[i], at->second) << "offset " << i;
    ASSERT_TRUE(i == 0 || found[i] > found[i - 1])
        << "record " << found[i] << " behind " << found[i - 1] << " at offset " << i;
  }
}

TEST(LostAnswers, NothingIsStoredTwiceAndNothingIsLost) {
  std::mt19937_64 random(std::random_device{}());
  BrokerProcess broker;
  Relay relay(broker.port());
  broker.advertise(relay.port());
  broker.start();
  create_topics(broker.address());
  Sender sender(broker.address());
  for (int round = 0; round < rounds() && !::testing::Test::HasFailure(); ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20 + random() % 100));
    relay.set(Relay::Mode::drop_answers);
    std::this_thread::sleep_for(std::chrono::milliseconds(5 + random() % 60));
    if (round % 2 == 0) broker.kill9();
    relay.set(Relay::Mode::accept_and_close);
    std::this_thread::sleep_for(20ms);
    if (round % 2 == 0) broker.start();
    relay.set(Relay::Mode::pass);
  }
  sender.finish();
  EXPECT_GT(sender.stats().batches_retried, 0u);
  EXPECT_GT(sender.accepted(), 500u);
  for (const std::string topic : kTopics) {
    SCOPED_TRACE(topic);
    check(read_numbers(broker.address(), topic), sender.delivered(topic));
  }
  EXPECT_EQ(broker.stop(), 0);
  if (::testing::Test::HasFailure()) std::cerr << broker.log();
}

}  // namespace
}  // namespace mq::faults
