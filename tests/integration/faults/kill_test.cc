// kill -9 at random moments: every acknowledged record is there afterwards, at its offset, with its
// bytes.

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
#include "mq/mq.h"

namespace mq::faults {
namespace {

using namespace std::chrono_literals;

int rounds() {
  const char* const text = std::getenv("MQ_FAULT_ROUNDS");
  return text == nullptr ? 50 : std::atoi(text);
}

std::string value_of(int writer, std::uint64_t n) {
  std::string value = std::to_string(writer) + ":" + std::to_string(n) + ":";
  value.resize(value.size() + n * 7919 % 700, static_cast<char>('a' + n % 26));
  return value;
}

/// What was acknowledged and what was read, by topic and offset. A value that a reader saw counts
/// as much as one that was acknowledged.
class Ledger {
 public:
  void acked(const std::string& topic, std::int64_t offset, std::string value) {
    std::lock_guard lock(mutex_);
    note(topic, offset, std::move(value));
    ++acked_;
  }
  void read(const std::string& topic, std::int64_t offset, std::string value) {
    std::lock_guard lock(mutex_);
    note(topic, offset, std::move(value));
  }
  [[nodiscard]] std::map<std::int64_t, std::string> expected(const std::string& topic) {
    std::lock_guard lock(mutex_);
    return values_[topic];
  }
  [[nodiscard]] std::uint64_t acked() {
    std::lock_guard lock(mutex_);
    return acked_;
  }

 private:
  void note(const std::string& topic, std::int64_t offset, std::string value) {
    const auto [at, added] = values_[topic].emplace(offset, std::move(value));
    if (!added) {
      EXPECT_EQ(at->second, value) << topic << " offset " << offset << " has two values";
    }
  }

  std::mutex mutex_;
  std::map<std::string, std::map<std::int64_t, std::string>> values_;
  std::uint64_t acked_ = 0;
};

/// Sends numbered values to one topic until told to stop; each has exactly one result.
class Writer {
 public:
  Writer(int number, std::string topic, const std::string& address, Acks acks, Ledger& ledger)
      : number_(number), topic_(std::move(topic)), ledger_(ledger) {
    ProducerConfig config;
    config.bootstrap = {address};
    config.acks = acks;
    config.linger = 1ms;
    config.delivery_timeout = 60s;
    config.log = [](LogLevel, std::string_view) {};
    auto producer = Producer::create(std::move(config));
    if (!producer) throw std::runtime_error(to_string(producer.error()));
    producer_ = std::make_unique<Producer>(std::move(*producer));
    thread_ = std::thread([this] { run(); });
  }
  ~Writer() { finish(); }

  void finish() {
    if (!thread_.joinable()) return;
    stop_ = true;
    thread_.join();
    EXPECT_TRUE(producer_->close(60s));
    // CLI-1: one result for every record that was accepted.
    EXPECT_EQ(results_, accepted_) << topic_;
    EXPECT_EQ(repeated_results_, 0u) << topic_;
  }
  [[nodiscard]] const std::string& topic() const { return topic_; }
  [[nodiscard]] std::uint64_t failed() const { return failed_; }

 private:
  void run() {
    for (std::uint64_t n = 0; !stop_; ++n) {
      if (producer_->pending() > 2000) std::this_thread::sleep_for(1ms);
      const auto sent = producer_->send(Record(topic_).value(value_of(number_, n)),
                                        [this, n](Result<Delivery> result) { done(n, result); });
      if (sent) ++accepted_;
      if (n % 16 == 0) std::this_thread::sleep_for(500us);
    }
  }
  void done(std::uint64_t n, const Result<Delivery>& result) {
    ++results_;
    std::lock_guard lock(mutex_);
    if (!seen_.insert(n).second) ++repeated_results_;
    if (!result) {
      ++failed_;
    } else if (result->offset >= 0) {
      ledger_.acked(topic_, result->offset, value_of(number_, n));
    }
  }

  int number_;
  std::string topic_;
  Ledger& ledger_;
  std::unique_ptr<Producer> producer_;
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> accepted_{0};
  std::atomic<std::uint64_t> results_{0};
  std::atomic<std::uint64_t> failed_{0};
  std::uint64_t repeated_results_ = 0;
  std::mutex mutex_;
  std::set<std::uint64_t> seen_;
  std::thread thread_;
};

std::map<std::int64_t, std::string> read_all(const std::string& address, const std::string& topic) {
  ConsumerConfig config;
  config.bootstrap = {address};
  auto consumer = Consumer::create(std::move(config));
  if (!consumer) throw std::runtime_error(to_string(consumer.error()));
  const TopicPartition partition{topic, 0};
  auto assigned = consumer->assign({{partition, Start{}}});
  EXPECT_TRUE(assigned) << (assigned ? "" : to_string(assigned.error()));
  auto ends = consumer->offsets();
  if (!ends) throw std::runtime_error(to_string(ends.error()));
  const auto end = ends->at(partition).end;
  std::map<std::int64_t, std::string> values;
  std::int64_t next = 0;
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  while (next < end && std::chrono::steady_clock::now() < deadline) {
    const auto batch = consumer->poll(1s);
    if (!batch) throw std::runtime_error(to_string(batch.error()));
    for (const auto& record : *batch) {
      EXPECT_EQ(record.offset, next) << topic << ": LOG-1, no offset is missing or twice";
      next = record.offset + 1;
      values.emplace(record.offset, std::string(as_text(*record.value)));
    }
  }
  EXPECT_GE(next, end) << topic;  // writers go on while this reads, so a batch may pass the end
  return values;
}

void create_topics(const std::string& address) {
  ClientConfig config;
  config.bootstrap = {address};
  auto admin = Admin::create(config);
  ASSERT_TRUE(admin) << to_string(admin.error());
  NewTopic disk("on-disk");
  disk.partitions = 1;
  disk.config = {{"durability", "disk"}, {"segment.bytes", "1MiB"}};
  NewTopic memory("in-memory");
  memory.partitions = 1;
  memory.config = {{"durability", "memory"}, {"segment.bytes", "1MiB"}};
  for (const auto& [name, created] : admin->create_topics({disk, memory}))
    ASSERT_TRUE(created) << name << ": " << to_string(created.error());
}

/// Every expected value is at its offset.
void check_expected(const std::map<std::int64_t, std::string>& found,
                    const std::map<std::int64_t, std::string>& expected) {
  for (const auto& [offset, value] : expected) {
    const auto at = found.find(offset);
    ASSERT_TRUE(at != found.end()) << "offset " << offset << " is lost: " << value.substr(0, 20);
    ASSERT_EQ(at->second, value) << "offset " << offset;
  }
}

/// IDM-2: values of one writer rise, and none is there twice, however often it was sent.
void check_order(const std::map<std::int64_t, std::string>& found) {
  std::set<std::uint64_t> seen;
  std::uint64_t highest = 0;
  for (const auto& [offset, value] : found) {
    const std::uint64_t n = std::stoull(value.substr(value.find(':') + 1));
    EXPECT_TRUE(seen.insert(n).second) << "record " << n << " is there twice, offset " << offset;
    EXPECT_TRUE(n >= highest) << "CLI-2: record " << n << " at " << offset << " behind " << highest;
    highest = std::max(highest, n);
  }
}

TEST(KillMinusNine, EveryAcknowledgedRecordIsThereUnderDiskAndMemory) {
  std::mt19937_64 random(std::random_device{}());
  BrokerProcess broker;
  broker.start();
  create_topics(broker.address());
  Ledger ledger;
  Writer disk(0, "on-disk", broker.address(), Acks::all, ledger);
  Writer memory(1, "in-memory", broker.address(), Acks::leader, ledger);
  for (int round = 0; round < rounds(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    std::this_thread::sleep_for(std::chrono::milliseconds(1 + random() % 150));
    broker.kill9();
    broker.start();
    if (round % 10 == 9) {
      for (const auto& topic : {"on-disk", "in-memory"}) {
        const auto before = ledger.expected(topic);
        const auto found = read_all(broker.address(), topic);
        check_expected(found, before);
        for (const auto& [offset, value] : found) ledger.read(topic, offset, value);
      }
    }
    if (::testing::Test::HasFailure()) break;
  }
  disk.finish();
  memory.finish();
  EXPECT_EQ(broker.stop(), 0);
  broker.start();
  for (auto* writer : {&disk, &memory}) {
    const auto found = read_all(broker.address(), writer->topic());
    check_expected(found, ledger.expected(writer->topic()));
    check_order(found);
  }
  EXPECT_GT(ledger.acked(), 1000u);
  EXPECT_EQ(disk.failed() + memory.failed(), 0u);
  EXPECT_EQ(broker.stop(), 0);
  if (::testing::Test::HasFailure()) std::cerr << broker.log();
}

}  // namespace
}  // namespace mq::faults
