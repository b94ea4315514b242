#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/wait_list.h"
#include "client/core/connection_pool.h"
#include "model/ids.h"
#include "mq/record.h"
#include "protocol/metadata.h"

namespace mq::client {

/// A topic as the newest answer described it; immutable.
struct TopicInfo {
  std::string name;
  base::Uuid id;
  std::uint64_t version = 0;  ///< of the cluster image that it is from
  base::TimePoint learnt{};
  std::uint32_t batch_bytes_max = 0;
  std::vector<protocol::PartitionMetadata> partitions;  ///< ascending

  /// Null when there is no such partition.
  [[nodiscard]] const protocol::PartitionMetadata* find(std::int32_t partition) const;
};
using TopicPtr = std::shared_ptr<const TopicInfo>;

/// A broker as the newest answer named it.
struct KnownBroker {
  base::Endpoint address;
  bool away = false;  ///< registered, but not in the cluster now
};

/// Which one `name` is in its topic; UNKNOWN_PARTITION when it has no such number.
Result<model::PartitionId> partition_of(const TopicInfo& topic, const TopicPartition& name);

/// What this client knows of the cluster: brokers, and the topics it has looked up, kept current
/// when an answer advises so. Topics are known by their uuid: one that is deleted, or created anew
/// under its name, is gone for ever. On the client's runtime.
class MetadataCache {
 public:
  MetadataCache(base::Runtime& runtime, ConnectionPool& pool, const ClientConfig& config);

  /// Asks a broker, and again while the answer is "try again", until `deadline`. From then on the
  /// topic is kept current.
  asio::awaitable<Result<TopicPtr>> lookup(std::string name, base::TimePoint deadline);
  /// One request, answered as it is; brokers and known topics are updated from it.
  asio::awaitable<Result<protocol::MetadataResponse>> fetch(protocol::MetadataRequest request,
                                                            base::TimePoint deadline);

  /// "orders/3", for messages.
  [[nodiscard]] std::string name_of(const model::PartitionId& partition) const;
  /// Id of the controller; -1 while there is none, or nothing was asked yet.
  [[nodiscard]] std::int32_t controller() const noexcept { return controller_; }
  [[nodiscard]] const std::map<std::int32_t, KnownBroker>& brokers() const noexcept {
    return brokers_;
  }
  /// Version of the newest image that an answer came from.
  [[nodiscard]] std::uint64_t version() const noexcept { return version_; }
  /// This client has changed something that is in images of this version and above: answers of
  /// older ones are not wanted any more.
  void need_version(std::uint64_t version) noexcept {
    needed_version_ = std::max(needed_version_, version);
  }
  /// Id of the broker that leads the partition; -1 while that is unknown.
  [[nodiscard]] std::int32_t leader(const model::PartitionId& partition) const;
  /// True once the topic with this id is known to be deleted.
  [[nodiscard]] bool gone(const base::Uuid& topic) const { return gone_.contains(topic); }

  /// What a broker said about a partition. That it has no such topic or partition is not its last
  /// word while this client knows of it: its image may be older (CLI-6). Metadata decides.
  [[nodiscard]] Error error_of(const protocol::Status& status, const model::PartitionId& partition,
                               const std::string& where) const;

  /// Asks about a known topic again, soon, together with others for which that is wanted by then:
  /// at most once per 50 ms, slower while it is asked for again and again.
  void refresh_soon(const base::Uuid& topic);
  /// An answer came from a broker with an image of this version. Known topics that are older are
  /// asked about again, in the same manner: partitions may have been added.
  void note_version(std::uint64_t version);
  /// For whoever gets no answers that would say: asks about the topic again if what is known of it
  /// was learnt longer ago.
  void refresh_older_than(const base::Uuid& topic, base::Duration age);
  /// Null: no such topic is known.
  [[nodiscard]] TopicPtr find(const base::Uuid& topic) const;
  /// Called after every update.
  void on_update(std::function<void()> call) { on_update_.push_back(std::move(call)); }
  [[nodiscard]] std::uint64_t refreshes() const noexcept { return refreshes_; }

  asio::awaitable<void> stop();

 private:
  void apply(const protocol::MetadataResponse& response);
  void apply_brokers(const protocol::MetadataResponse& response);
  void apply_topic(const protocol::TopicMetadata& topic, std::uint64_t version);
  void want_older_topics();
  void begin_refresh();
  asio::awaitable<void> refresh();
  asio::awaitable<std::optional<Error>> ask_again(std::vector<base::Uuid> topics);

  base::Runtime& runtime_;
  ConnectionPool& pool_;
  const ClientConfig& config_;
  std::map<std::int32_t, KnownBroker> brokers_;
  std::int32_t controller_ = -1;
  std::uint64_t version_ = 0;
  std::uint64_t needed_version_ = 0;
  std::uint64_t noted_version_ = 0;  ///< the newest that an answer of any kind came from
  std::map<std::string, TopicPtr> by_name_;
  std::unordered_map<base::Uuid, TopicPtr> by_id_;
  std::set<base::Uuid> gone_;
  std::set<base::Uuid> refresh_wanted_;
  bool refreshing_ = false;
  base::TimePoint last_refresh_{};
  base::TimePoint trouble_since_{};  ///< the first of refreshes that follow each other
  std::chrono::milliseconds pause_{0};
  std::uint64_t refreshes_ = 0;
  std::vector<std::function<void()>> on_update_;
  base::TaskGroup tasks_;
  base::WaitList stopping_;
  bool stopped_ = false;
};

}  // namespace mq::client
