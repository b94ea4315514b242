#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "client/core/consumer_core.h"
#include "client/core/producer_core.h"
#include "sim/broker_machine.h"
#include "sim/record_ledger.h"

namespace mq::sim {

/// What all clients of a world know together: a ledger per partition.
struct SharedLedger {
  RecordLedger& of(const std::string& topic, std::int32_t partition);
  std::map<TopicPartition, std::unique_ptr<RecordLedger>> partitions;
  /// Raised when unsynced records may have been lost: positions beyond the log's end are no wonder.
  std::map<TopicPartition, int> losses;
  /// Unsynced records may have been lost: what was fetched before may lie beyond the log's end.
  std::set<TopicPartition> doubtful;
  /// What the broker's log holds now: [start, end). Nothing while no broker serves.
  std::function<std::optional<std::pair<std::int64_t, std::int64_t>>(const TopicPartition&)> range;
};

/// One producer on a machine of its own: sends numbered values to one topic until told to stop, and
/// sees to it that each gets exactly one result.
class SimProducer {
 public:
  SimProducer(BrokerMachine& machine, SharedLedger& ledger, std::uint64_t number, std::string topic,
              Acks acks);

  void start();
  /// Sends nothing more.
  void quiesce() noexcept { sending_ = false; }
  /// All accepted records have their result.
  [[nodiscard]] bool settled() const noexcept { return idle_ && sent_.without_result() == 0; }
  void stop();
  [[nodiscard]] bool stopped() const noexcept { return stopped_; }
  [[nodiscard]] const SentRecords& sent() const noexcept { return sent_; }
  [[nodiscard]] Acks acks() const noexcept { return acks_; }

 private:
  ProducerConfig config();
  asio::awaitable<void> run();
  asio::awaitable<void> run_stop();
  void send_one(client::ProducerTopic& topic);
  void delivered(const DeliveryRange& range);

  BrokerMachine& machine_;
  SharedLedger& ledger_;
  testing::SimRandom random_;
  testing::SimRuntime runtime_;
  std::unique_ptr<base::Network> network_;
  std::string topic_;
  Acks acks_;
  SentRecords sent_;
  std::vector<std::size_t> padding_;  // by record number
  client::ProducerCore core_;
  bool sending_ = true;
  bool idle_ = false;
  bool stopped_ = false;
};

/// One consumer on a machine of its own: reads some partitions from their start or end, seeks
/// about, and holds everything it gets against the ledger.
class SimConsumer {
 public:
  SimConsumer(BrokerMachine& machine, SharedLedger& ledger, std::uint64_t number,
              std::vector<TopicPartition> partitions);

  void start();
  /// Goes back to the start of everything and does not seek about any more; once.
  void read_all_again();
  [[nodiscard]] bool rewound() const noexcept { return rewound_; }
  /// After read_all_again(): what it has found, by partition.
  [[nodiscard]] const std::map<TopicPartition, std::map<std::int64_t, std::string>>& found() const {
    return found_;
  }
  [[nodiscard]] std::map<TopicPartition, std::int64_t> positions() const {
    return core_.positions();
  }
  void stop();
  [[nodiscard]] bool stopped() const noexcept { return stopped_; }

 private:
  ConsumerConfig config();
  asio::awaitable<void> run();
  asio::awaitable<void> run_stop();
  asio::awaitable<void> seek_about();
  asio::awaitable<void> rewind();
  void take_all();
  void take(const RecordView& record);
  void failed(const Error& error);

  BrokerMachine& machine_;
  SharedLedger& ledger_;
  testing::SimRandom random_;
  testing::SimRuntime runtime_;
  std::unique_ptr<base::Network> network_;
  std::vector<TopicPartition> partitions_;
  client::ConsumerCore core_;
  std::map<TopicPartition, std::int64_t> next_;  // expected offset; -1: any
  std::map<TopicPartition, std::map<std::int64_t, std::string>> found_;
  bool final_ = false;
  bool rewound_ = false;
  bool ending_ = false;
  bool running_ = false;
  bool stopped_ = false;
};

}  // namespace mq::sim
