#pragma once

#include <map>
#include <string>
#include <vector>

#include "broker/core.h"
#include "replication/isr.h"

namespace mq::broker {

/// What an operator wants to know about one partition, taken on its worker.
struct PartitionFacts {
  model::Offset log_start_offset;
  model::Offset high_watermark;
  model::Offset log_end_offset;
  std::uint64_t bytes = 0;
  std::uint32_t segments = 0;
  std::string failure;  ///< why it is not served; empty when it is
  std::string damage;   ///< that a read has met; served all the same
  std::vector<replication::Isr::Follower> followers;
};

/// Facts about every partition served here, gathered worker by worker. A partition that the image
/// knows and the map does not is not ready.
asio::awaitable<std::map<model::PartitionId, PartitionFacts>> gather_partition_facts(Core& core);

/// Why a partition is not served, for people; empty when it is. `facts`: null, if it is not ready.
std::string partition_note(const Core& core, const PartitionFacts* facts);

}  // namespace mq::broker
