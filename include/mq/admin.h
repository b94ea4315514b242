#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mq/config.h"
#include "mq/export.h"
#include "mq/record.h"
#include "mq/result.h"

namespace mq {
inline namespace v1 {

/// One outcome per item, by its name.
template <class T>
using PerItem = std::map<std::string, Result<T>>;

struct NewTopic {
  explicit NewTopic(std::string topic_name) : name(std::move(topic_name)) {}
  std::string name;
  std::int32_t partitions = -1;  ///< -1: the broker's default
  std::int32_t replicas = -1;
  std::int32_t min_isr = -1;
  std::map<std::string, std::string> config;  ///< as text: {"retention.age", "14d"}
};
struct CreatedTopic {
  std::string id;  ///< 32 hex digits; empty for a dry run
  std::int32_t partitions = 0;
};

/// What alter_topics() changes of one topic; settings that are not named stay.
struct TopicChange {
  std::map<std::string, std::string> set;  ///< as text: {"retention.age", "14d"}
  std::vector<std::string> unset;          ///< back to the broker's default
};

struct TopicSummary {
  std::string name;
  std::string id;
  std::int32_t partitions = 0;
  std::int32_t replicas = 0;
  std::uint64_t bytes = 0;  ///< on disk, leaders only
  std::uint64_t records = 0;
  /// Without a leader, or whose leader does not serve them or was not reached.
  std::int32_t partitions_not_serving = 0;
};

struct TopicSetting {
  std::string name;
  std::string value;
  std::string origin;  ///< "topic", "broker.toml" (the controller's), "built-in"
};
/// Where a partition is, as the cluster's metadata says.
struct PartitionInfo {
  std::string topic;
  std::int32_t partition = -1;
  std::int32_t leader = -1;  ///< broker id; -1: none
  std::int32_t leader_epoch = -1;
  std::vector<std::int32_t> replicas;
  std::vector<std::int32_t> in_sync;
  std::uint32_t min_isr = 0;  ///< with fewer in sync acks=all is refused; 0: not known
};
struct FollowerDescription {
  std::int32_t broker = -1;
  std::int64_t confirmed_end =
      -1;             ///< below it, it has everything; -1: its leader has not heard it
  Duration behind{};  ///< so long ago it had everything that the leader had
};
/// Of a replica.
struct ReplicaNote {
  std::int32_t broker = -1;
  std::string text;  ///< why it does not lead while nobody does; or that it is damaged, and where
};
/// What the partition's leader says of it; offsets are -1 when it has none or was not reached.
struct PartitionDescription {
  std::int32_t partition = -1;
  std::int32_t leader = -1;  ///< broker id; -1: none
  std::int32_t leader_epoch = -1;
  std::vector<std::int32_t> replicas;
  std::vector<std::int32_t> in_sync;
  std::int64_t log_start_offset = -1;
  std::int64_t high_watermark = -1;  ///< exclusive end of what consumers may read
  std::int64_t log_end_offset = -1;
  std::uint64_t bytes = 0;
  std::uint32_t segments = 0;
  std::string note;  ///< why it is not served; empty when it is
  std::uint32_t min_isr = 1;
  /// The leader epoch that began with a replica which may have lost records; -1: none, or
  /// acknowledged.
  std::int32_t loss_epoch = -1;
  std::int64_t loss_start = -1;  ///< the first offset that may be lost then; -1: not known
  std::int64_t loss_end = -1;    ///< where it ends, once a replica that had more has come back
  std::vector<FollowerDescription> followers;
  /// Where nobody leads: one for each replica; else one for each that is damaged in places.
  std::vector<ReplicaNote> replica_notes;
};
struct TopicDescription {
  std::string name;
  std::string id;
  std::vector<TopicSetting> settings;
  std::vector<PartitionDescription> partitions;
};

struct BrokerInfo {
  std::int32_t id = -1;
  std::string address;  ///< as advertised: "host:port"
  bool away = false;    ///< registered, but not in the cluster now
  std::string rack{};   ///< empty: none was given
};
/// What elect_leaders() has brought about.
struct ElectedLeader {
  std::int32_t broker = -1;  ///< who leads now
  bool changed = false;      ///< false: it did already
};
struct ClusterDescription {
  std::string id;                ///< 32 hex digits
  std::int32_t controller = -1;  ///< broker id; -1: none
  std::vector<BrokerInfo> brokers;
};
struct DiskDescription {
  std::string path;
  std::string state;             ///< "ok", "full", "failed", "recovering"
  std::uint64_t bytes_used = 0;  ///< by this broker's logs
  std::uint64_t bytes_free = 0;
  std::uint64_t bytes_total = 0;
  std::uint32_t partitions = 0;
  std::string id;                ///< 32 hex digits; empty: it could not be opened
  std::string reason;            ///< why it is not ok
  std::uint64_t write_rate = 0;  ///< bytes per second, of late
  std::uint64_t scrubbed_bytes = 0;
  std::uint32_t scrub_damaged_segments = 0;
  /// The broker epochs since which nothing confirmed can be missing, by durability; -1: not known.
  std::int64_t intact_since_disk = -1;
  std::int64_t intact_since_memory = -1;
  /// What was put aside instead of being served, until somebody removes it (unknown/).
  std::uint64_t aside_bytes = 0;
  std::uint32_t aside_logs = 0;
};
/// Something that a broker gives the alarm for.
struct BrokerAlert {
  std::string check;  ///< one word, as `mqctl health` names it
  int level = 1;      ///< from this level of `mqctl health` on the cluster is not well
  std::string text;
};
struct BrokerDescription {
  std::int32_t id = -1;
  std::string address;  ///< as advertised
  std::string version;
  std::string metadata;  ///< "local" or "zookeeper"
  Duration uptime{};
  std::int64_t process_id = 0;
  std::uint64_t resident_bytes = 0;
  Duration cpu_user{};
  Duration cpu_system{};
  std::uint32_t workers = 0;
  std::uint32_t connections = 0;
  std::uint32_t topics = 0;
  std::uint32_t partitions = 0;  ///< with a replica there
  std::uint32_t partitions_led = 0;
  std::uint32_t partitions_not_serving = 0;  ///< led, but not served
  std::uint32_t partitions_damaged = 0;      ///< with a replica there that is damaged in places
  /// After an unclean stop: partitions whose logs are still read.
  std::uint32_t partitions_recovering = 0;
  std::uint64_t recovery_bytes_read = 0;
  std::vector<DiskDescription> disks;
  std::int32_t controller = -1;    ///< whom this broker takes for it; -1: nobody
  std::int64_t broker_epoch = -1;  ///< of its registration
  std::string rack;
  /// How far its wall clock is ahead of the median of all brokers'; nothing: not compared.
  std::optional<Duration> clock_ahead;
  std::string metadata_trouble;  ///< what keeps the metadata store from answering; empty: nothing
  bool lease_lost = false;  ///< the metadata store has not confirmed the broker's session of late
  std::vector<BrokerAlert> alerts;  ///< what the numbers here do not say already
  std::map<std::string, std::int64_t> counters;
  std::vector<std::string> warnings;
};
/// One key of broker.toml with the value in force.
struct ConfigSetting {
  std::string name;
  std::string value;   ///< as it would stand in the file
  std::string origin;  ///< "built-in", "/etc/mq/broker.toml:4", "--set", an environment variable
};

/// Creates, changes, deletes and describes. Every call blocks for at most request_timeout.
///
/// Threads: all members may be called from any thread; the admin owns one I/O thread. Errors: a
/// call with several items returns one outcome for each; when no broker could be asked, each item
/// has that error. Changes go to the controller, wherever it is by then; one has returned only when
/// the cluster's metadata shows it, so that the next call of this client sees it.
class MQ_EXPORT Admin {
 public:
  /// Connects; fails with unreachable, not_mq, wrong_cluster or invalid_client_config.
  static Result<Admin> create(ClientConfig config);
  Admin(Admin&&) noexcept;
  Admin& operator=(Admin&&) noexcept;
  ~Admin();

  PerItem<CreatedTopic> create_topics(const std::vector<NewTopic>& topics, bool dry_run = false);
  PerItem<void> delete_topics(const std::vector<std::string>& names);
  /// Changes settings of topics that exist. An outcome that got lost is resolved by asking again.
  PerItem<void> alter_topics(const std::map<std::string, TopicChange>& changes);
  /// Gives topics more partitions: how many there are to be, at least what there is. The number
  /// there is then. Records with a key may go to another partition than before. Producers,
  /// and consumers of the whole topic, take the new ones in by themselves, within seconds.
  PerItem<std::int32_t> add_partitions(const std::map<std::string, std::int32_t>& totals);
  Result<std::vector<TopicSummary>> list_topics();
  PerItem<TopicDescription> describe_topics(const std::vector<std::string>& names);

  /// All partitions of all topics, by topic and number.
  Result<std::vector<PartitionInfo>> list_partitions();

  /// Removes the records below an offset, which is the first one that stays; at most the
  /// partition's high watermark. The new log start of each partition; one that was there already or
  /// above stays.
  std::map<TopicPartition, Result<std::int64_t>> trim(
      const std::map<TopicPartition, std::int64_t>& to);

  /// Has them led by `broker`, or by the first of their replicas that can; only by one that is in
  /// sync.
  std::map<TopicPartition, Result<ElectedLeader>> elect_leaders(
      const std::vector<TopicPartition>& partitions, std::int32_t broker = -1);
  /// Has partitions that nobody leads led by `broker`, a replica that is there, with what it has.
  /// RECORDS ARE LOST where others had more; where its own log is damaged it keeps what is sound.
  /// The range is in PartitionDescription until acknowledge_losses(). A partition is refused that
  /// is led by a replica without known damage, or that one with all records can lead. `dry_run`:
  /// nothing is changed; whether it would be refused.
  std::map<TopicPartition, Result<ElectedLeader>> elect_with_loss(
      const std::vector<TopicPartition>& partitions, std::int32_t broker, bool dry_run = false);
  /// It is known that records of these partitions may be lost: they are no alarm any more. False:
  /// there was none.
  std::map<TopicPartition, Result<bool>> acknowledge_losses(
      const std::vector<TopicPartition>& partitions);

  Result<ClusterDescription> describe_cluster();
  /// Every broker of the cluster, each asked itself, all at once; unreachable for one that is away.
  std::map<std::int32_t, Result<BrokerDescription>> describe_brokers();
  /// The settings in force at every broker.
  std::map<std::int32_t, Result<std::vector<ConfigSetting>>> describe_configs();

  /// Ends the I/O thread; calls in progress return closed. Again: does nothing.
  Result<void> close(Duration timeout);

  struct Impl;

 private:
  explicit Admin(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace v1
}  // namespace mq
