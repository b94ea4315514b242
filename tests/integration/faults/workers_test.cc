// A broker with more workers than partitions have in common: every request may cross threads.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "integration/faults/broker_process.h"
#include "integration/faults/client_support.h"

namespace mq::faults {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::int32_t kPartitions = 8;
constexpr int kProducers = 4;
constexpr int kRecords = 4000;  // of each producer

struct Workers : ::testing::Test {
  BrokerProcess broker;

  void SetUp() override {
    const std::string folder = broker.dir() / "broker.d";
    std::filesystem::create_directory(folder);
    std::ofstream(folder + "/workers.toml") << "[broker]\nworkers = 4\n";
    broker.start();
  }
  void create_topic(const std::string& name, const std::string& durability) {
    auto admin = must(Admin::create(quiet<ClientConfig>(broker.address())));
    NewTopic topic(name);
    topic.partitions = kPartitions;
    topic.config = {{"durability", durability}};
    for (const auto& [item, created] : admin.create_topics({topic}))
      ASSERT_TRUE(created) << item << ": " << to_string(created.error());
  }
  /// Sends numbered records, to one partition or to all in turn; returns how many arrived.
  int produce(const std::string& topic, int producer_number) {
    auto config = quiet<ProducerConfig>(broker.address());
    config.linger = 0ms;
    config.batch_bytes = 4 << 10;
    auto producer = must(Producer::create(config));
    std::atomic<int> delivered{0};
    const bool one = producer_number % 2 == 0;
    for (int i = 0; i < kRecords; ++i) {
      auto record = Record(topic)
                        .partition(one ? producer_number : i % kPartitions)
                        .value(std::to_string(producer_number) + " " + std::to_string(i));
      const auto sent = producer.send(std::move(record), [&](const Result<Delivery>& result) {
        if (result) ++delivered;
      });
      if (!sent) break;
    }
    (void)producer.flush(60s);
    return delivered;
  }
  /// Sends records to one partition, each in a request of its own.
  void produce_singly(const std::string& topic, std::int32_t partition, int records) {
    auto producer = must(Producer::create(quiet<ProducerConfig>(broker.address())));
    for (int i = 0; i < records; ++i)
      must(producer.send(Record(topic).partition(partition).value("x")).get());
  }
  /// Reads everything while it is written: each producer's records of a partition in order, none
  /// twice, none missing.
  void read_all(const std::string& topic, int wanted) {
    auto config = quiet<ConsumerConfig>(broker.address());
    auto consumer = must(Consumer::create(config));
    std::map<TopicPartition, Start> positions;
    for (std::int32_t i = 0; i < kPartitions; ++i)
      positions.emplace(TopicPartition{topic, i}, Start{});
    ASSERT_TRUE(consumer.assign(positions));
    std::map<std::pair<int, std::int32_t>, int> last;
    int seen = 0;
    const auto deadline = Clock::now() + 120s;
    while (seen < wanted && Clock::now() < deadline) {
      for (const auto& record : must(consumer.poll(500ms))) {
        const std::string text(as_text(*record.value));
        const int producer = std::stoi(text);
        const int number = std::stoi(text.substr(text.find(' ')));
        const auto [before, first] = last.try_emplace({producer, record.partition}, -1);
        ASSERT_LT(before->second, number);
        before->second = number;
        ++seen;
      }
    }
    EXPECT_EQ(seen, wanted);
  }
};

struct WorkersDurability : Workers, ::testing::WithParamInterface<const char*> {};

// PRO-3, PAR-5, CLI-2
TEST_P(WorkersDurability, OrderHoldsWhereEveryRequestMayCrossThreads) {
  create_topic("t", GetParam());
  std::vector<int> delivered(kProducers);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kProducers; ++i)
      threads.emplace_back([&, i] { delivered[i] = produce("t", i); });
    threads.emplace_back([&] { read_all("t", kProducers * kRecords); });
    threads.emplace_back([&] { read_all("t", kProducers * kRecords); });
  }
  for (const int count : delivered) EXPECT_EQ(count, kRecords);
  EXPECT_EQ(broker.stop(), 0);
}

INSTANTIATE_TEST_SUITE_P(Workers, WorkersDurability, ::testing::Values("memory", "disk"));

TEST_F(Workers, ConnectionsMoveToTheWorkerOfTheirPartition) {
  create_topic("t", "memory");
  std::vector<std::jthread> threads;
  for (int i = 0; i < kPartitions; ++i)
    threads.emplace_back([this, i] { produce_singly("t", 2 * (i % 4), 40); });
  threads.clear();
  const auto out = broker.dir() / "status";
  ChildProcess mqctl({program("mqctl"), "-b", broker.address(), "status", "-v"}, out);
  ASSERT_EQ(mqctl.wait(20s), 0);
  std::ifstream file(out);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const auto at = text.find("connections_moved_total");
  ASSERT_NE(at, std::string::npos) << text;
  EXPECT_GT(std::stoi(text.substr(text.find_first_of("0123456789", at))), 0) << text;
}

}  // namespace
}  // namespace mq::faults
