#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/network.h"
#include "base/uuid.h"
#include "metadata/error.h"
#include "model/ids.h"
#include "model/isr.h"

namespace mq::metadata {

/// Who wrote a value, and in which of its writes: what tells after an unknown outcome whether a
/// write took effect. Every value carries it.
struct WriterTag {
  base::Uuid incarnation;
  std::uint64_t sequence = 0;
  friend bool operator==(const WriterTag&, const WriterTag&) = default;
};

struct ClusterValue {
  WriterTag writer;
  base::Uuid id;
  std::uint32_t layout_version = 0;
  std::uint32_t feature_level = 0;
};
struct BrokerEpochValue {
  WriterTag writer;
  base::Uuid incarnation;
  std::vector<base::Uuid> disks;
  base::Endpoint advertised{};  ///< of the last registration; port 0: not known
  std::string rack{};           ///< the same; empty: none was given
};
struct BrokerLiveValue {
  WriterTag writer;
  base::Uuid incarnation;
  base::Endpoint advertised;
};
struct ControllerValue {
  WriterTag writer;
  model::BrokerId broker;
  base::Endpoint advertised;
};
struct ControllerEpochValue {
  WriterTag writer;
  model::BrokerId broker;
};
struct HeartbeatValue {
  WriterTag writer;
};
struct TopicPartition {
  std::int32_t number = -1;
  std::vector<model::BrokerId> replicas;
};
struct TopicValue {
  WriterTag writer;
  base::Uuid id;
  std::string name;
  std::map<std::string, std::string> overrides;
  std::vector<TopicPartition> partitions;  ///< ascending by number
  std::int32_t next_partition = 0;         ///< numbers below it are used up
  std::uint32_t partition_count_epoch = 0;
};
using model::IsrMember;
struct PartitionStateValue {
  WriterTag writer;
  model::BrokerId leader;
  model::LeaderEpoch leader_epoch;
  std::vector<IsrMember> isr;
  /// Complete like the ISR: they left it when it went below min_isr, and nothing has been confirmed
  /// since. Empty while the ISR has min_isr members.
  std::vector<IsrMember> elr;
  /// Were in ISR or ELR and came back under a registration that may have lost records.
  std::vector<IsrMember> last_known_elr;
  std::uint32_t min_isr = 1;  ///< in force; a change of the setting comes with a change of the ELR
  /// The leader epoch that began with a replica which may have lost records, while nobody had more;
  /// until somebody says that this is known. -1: there was none.
  model::LeaderEpoch loss_epoch;
  /// Where the records begin that may be lost; and where they end, as far as somebody who had more
  /// has said it. -1: not known.
  model::Offset loss_start;
  model::Offset loss_end;
};

struct ProducerIdsValue {
  WriterTag writer;
  std::int64_t next_id = 0;  ///< ids below it have been given to some broker
};

/// The values as the store keeps them: Protobuf, see proto/nodes.proto.
std::string encode(const ClusterValue& value);
std::string encode(const BrokerEpochValue& value);
std::string encode(const BrokerLiveValue& value);
std::string encode(const ControllerValue& value);
std::string encode(const ControllerEpochValue& value);
std::string encode(const HeartbeatValue& value);
std::string encode(const TopicValue& value);
std::string encode(const PartitionStateValue& value);
std::string encode(const ProducerIdsValue& value);

/// Reads what encode() wrote; `damaged` for anything else.
Result<ClusterValue> decode_cluster(std::string_view bytes);
Result<BrokerEpochValue> decode_broker_epoch(std::string_view bytes);
Result<BrokerLiveValue> decode_broker_live(std::string_view bytes);
Result<ControllerValue> decode_controller(std::string_view bytes);
Result<ControllerEpochValue> decode_controller_epoch(std::string_view bytes);
Result<TopicValue> decode_topic(std::string_view bytes);
Result<PartitionStateValue> decode_partition_state(std::string_view bytes);
Result<ProducerIdsValue> decode_producer_ids(std::string_view bytes);
/// The tag of any of them.
Result<WriterTag> decode_writer(std::string_view bytes);

}  // namespace mq::metadata
