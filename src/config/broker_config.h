#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/log.h"
#include "base/network.h"
#include "model/ids.h"
#include "model/topic_settings.h"

namespace mq::config {

inline constexpr std::uint16_t kDefaultPort = 9500;

struct ListenerConfig {
  base::Endpoint bind{"127.0.0.1", kDefaultPort};  ///< port 0: any free one
  /// What clients are told. Port 0: the one that was bound.
  base::Endpoint advertised{"127.0.0.1", kDefaultPort};
};

/// Where a cluster keeps its metadata.
struct ZooKeeperConfig {
  std::vector<base::Endpoint> servers;  ///< empty: the metadata is local
  std::string chroot;                   ///< "" or a path such as "/mq"
};

struct LimitsConfig {
  std::uint64_t memory_bytes = std::uint64_t{256} << 20;  ///< of all requests under way
  std::uint32_t connections = 10'000;
  std::chrono::milliseconds hello_timeout{std::chrono::seconds(10)};  ///< connect to Hello
  std::chrono::milliseconds frame_timeout{std::chrono::seconds(30)};  ///< first to last byte
  std::chrono::milliseconds write_timeout{std::chrono::seconds(30)};  ///< an answer makes no way
  std::chrono::milliseconds idle_timeout{std::chrono::minutes(10)};
};

/// broker.toml, checked: [broker], [storage], [[storage.disk]], [listener.clients],
/// [topic.defaults], [limits], [log].
struct BrokerConfig {
  model::BrokerId id;
  std::string metadata;            ///< "local" or "zookeeper://zk1:2181,zk2:2181/mq"
  ZooKeeperConfig zookeeper;       ///< what `metadata` says, taken apart
  std::uint32_t workers = 0;       ///< 0: by the number of cores
  std::vector<std::string> disks;  ///< paths, one per disk; the metadata store is on the first
  /// Where each disk's journal lies, on another device; empty: on the disk itself.
  std::vector<std::string> journals;
  std::uint64_t dirty_bytes_max = std::uint64_t{1} << 30;  ///< per disk, not written back yet
  /// How fast finished segments are read again to find damage; 0: not at all.
  std::uint64_t scrub_bytes_per_second = std::uint64_t{5} << 20;
  /// What replicas that are not in sync may fetch from this broker, all together; 0: as fast as
  /// they can.
  std::uint64_t catch_up_bytes_per_second = 0;
  /// So long the first replica of a partition has been able to lead before it leads again; 0:
  /// never.
  std::chrono::milliseconds leader_balance_after{std::chrono::minutes(1)};
  /// Percent of the partitions that a broker is the first replica of which others may lead for
  /// ever.
  std::uint32_t leader_balance_limit = 10;
  std::string rack;  ///< where the broker stands; empty: not said
  ListenerConfig listener;
  LimitsConfig limits;
  model::TopicSettings topic_defaults;
  std::int32_t default_partitions = 1;
  std::int32_t default_replicas = 0;  ///< 0: three, or as many as there are brokers
  std::uint32_t default_min_isr = 0;  ///< 0: two where there are three replicas or more, else one
  base::LogLevel log_level = base::LogLevel::info;
};

/// One mistake: "broker.toml:4:9: broker.id: expected a number from 0 to 2147483647, got "one"".
struct ConfigError {
  std::string source;  ///< file, "environment variable MQ_BROKER__ID" or "--set"
  std::uint32_t line = 0;
  std::uint32_t column = 0;  ///< 0: no place in the file
  std::string key;           ///< "broker.id"; empty if the file does not parse
  std::string message;

  [[nodiscard]] std::string text() const;
};

/// One key with the value in force and where it comes from: "built-in", "broker.toml:4",
/// "environment variable MQ_BROKER__ID", "--set".
struct EffectiveSetting {
  std::string key;
  std::string value;
  std::string origin;
};

struct LoadedConfig {
  BrokerConfig config;                     ///< meaningful only without errors
  std::vector<EffectiveSetting> settings;  ///< every known key, in the order of the sections
  std::vector<ConfigError> errors;         ///< all of them, by source and place
  std::vector<std::string> warnings;       ///< allowed, but worth a line that `status` repeats

  [[nodiscard]] bool ok() const noexcept { return errors.empty(); }
};

/// Where values come from, weakest first: built-in, `file`, `<folder of file>/broker.d/*.toml` in
/// order of name, `environment` (MQ_BROKER__ID is broker.id: names with MQ_ and a double underscore
/// are ours, all others are not looked at), `flags` ("broker.id=1"). A list such as
/// [[storage.disk]] is replaced as a whole by a stronger source.
struct ConfigSources {
  std::string file;
  std::map<std::string, std::string> environment;
  std::vector<std::string> flags;
};

LoadedConfig load_broker_config(base::FileSystem& files, const ConfigSources& sources);

/// The settings as aligned lines "key = value    # origin", for `mqbroker --check`.
std::string render_effective_config(const std::vector<EffectiveSetting>& settings);

}  // namespace mq::config
