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

/// What all clients of a world know together: a ledger per partition. A topic that was made again
/// under its name is another one here.
struct SharedLedger {
  struct Sent {
    base::Uuid topic;
    base::TimePoint at;
  };

  RecordLedger& of(const model::PartitionId& partition);
  /// Which topic the producer sent its record number `n` to.
  [[nodiscard]] const base::Uuid& sent_to(const ValueName& record) const {
    return sending_of(record).topic;
  }
  [[nodiscard]] const Sent& sending_of(const ValueName& record) const;
  [[nodiscard]] bool given_up(const model::PartitionId& partition, std::int64_t offset,
                              const ValueName& record) const {
    return may_be_lost && may_be_lost(partition, offset, sending_of(record).at);
  }

  std::map<model::PartitionId, std::unique_ptr<RecordLedger>> partitions;
  /// A record that was sent then need not be at this offset: it was given up. Empty: none was.
  std::function<bool(const model::PartitionId&, std::int64_t offset, base::TimePoint sent)>
      may_be_lost;
  /// No other replica has what is damaged in one of them. Empty: so it always is.
  std::function<bool(const model::PartitionId&)> only_damaged;
  std::map<std::uint64_t, std::vector<Sent>> sent;  // by producer, then record number
  /// Raised when unsynced records may have been lost: positions beyond the log's end are no wonder.
  std::map<model::PartitionId, int> losses;
  /// Unsynced records may have been lost: what was fetched before may lie beyond the log's end.
  std::set<model::PartitionId> doubtful;
  /// How often each name was seen to be deleted.
  std::map<std::string, std::uint64_t> generations;
  std::set<std::string> with_retention;  ///< names of topics from which old records go
  /// What the broker's log holds now: [start, confirmed end). Nothing while no broker serves it.
  std::function<std::optional<std::pair<std::int64_t, std::int64_t>>(const model::PartitionId&)>
      range;
  /// A deletion of the name was begun and not yet seen to have happened.
  std::function<bool(const std::string&)> leaving;
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
  asio::awaitable<client::ProducerTopicPtr> find_topic();
  bool send_one(client::ProducerTopic& topic);
  void delivered(const DeliveryRange& range);
  void check_refusal(const model::PartitionId& partition, const DeliveryRange& range);

  BrokerMachine& machine_;
  SharedLedger& ledger_;
  testing::SimRandom random_;
  testing::SimRuntime runtime_;
  std::unique_ptr<base::Network> network_;
  std::string topic_;
  Acks acks_;
  SentRecords sent_;
  std::vector<std::size_t> padding_;        // by record number
  std::set<model::PartitionId> known_in_;   // partitions that hold something of it
  std::set<model::PartitionId> failed_in_;  // in which something of it was given up
  client::ProducerCore core_;
  bool sending_ = true;
  bool idle_ = false;
  bool stopped_ = false;
};

/// One consumer on a machine of its own: reads all partitions of one topic from their start or end,
/// seeks about, follows the name when the topic is made again, and holds everything it gets against
/// the ledger.
class SimConsumer {
 public:
  SimConsumer(BrokerMachine& machine, SharedLedger& ledger, std::uint64_t number, std::string topic,
              std::int32_t partitions);

  void start();
  /// Goes back to the start of everything and does not seek about any more; once.
  void read_all_again();
  /// It reads from the start what has the name now.
  [[nodiscard]] bool rewound() const {
    return rewound_ && generation_ == ledger_.generations[topic_];
  }
  /// After read_all_again(): the topic that it reads, none if it has found no record, ...
  [[nodiscard]] const std::optional<base::Uuid>& topic_read() const noexcept { return id_; }
  [[nodiscard]] const std::string& topic() const noexcept { return topic_; }
  /// ... and what it has found, by partition.
  [[nodiscard]] const std::map<std::int32_t, std::map<std::int64_t, std::string>>& found() const {
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
  asio::awaitable<void> assign();
  asio::awaitable<void> seek_about();
  asio::awaitable<void> rewind();
  void take_all();
  void take(const RecordView& record);
  void failed(const Error& error);
  [[nodiscard]] bool explains_out_of_range();
  void check_damage(const Error& error) const;
  [[nodiscard]] bool topic_changed();

  BrokerMachine& machine_;
  SharedLedger& ledger_;
  testing::SimRandom random_;
  testing::SimRuntime runtime_;
  std::unique_ptr<base::Network> network_;
  std::string topic_;
  std::vector<TopicPartition> partitions_;
  client::ConsumerCore core_;
  std::uint64_t generation_ = 0;               // of the name, when the topic was looked up
  std::optional<base::Uuid> id_;               // as its records tell
  std::map<std::int32_t, std::int64_t> next_;  // expected offset; -1: any
  std::map<std::int32_t, std::map<std::int64_t, std::string>> found_;
  bool assign_wanted_ = true;
  bool rewind_wanted_ = false;
  bool final_ = false;
  bool rewound_ = false;
  bool ending_ = false;
  bool running_ = false;
  bool stopped_ = false;
};

}  // namespace mq::sim
