#pragma once

#include <string>
#include <vector>

#include "base/file_system.h"
#include "storage/producer_table.h"
#include "storage/storage_error.h"

namespace mq::storage {

/// Where a batch lies, and the checksum that tells it from every other: it covers offset, epoch and
/// time, and through the body's checksum all the rest.
struct BatchPlace {
  model::Offset segment_base;  ///< -1: there is none
  std::uint64_t position = 0;
  std::uint32_t stamp_crc = 0;
  friend bool operator==(const BatchPlace&, const BatchPlace&) = default;
};

/// The producer table as of one log end, in a `.producers` file named by that offset (FORMAT.md). A
/// cache (LOG-5): it can always be made again from the log.
struct ProducerSnapshot {
  model::PartitionId partition;
  model::Offset end_offset;    ///< of the log then, exclusive
  model::Offset segment_base;  ///< of the segment that a batch at end_offset goes into
  std::uint64_t position = 0;  ///< of that batch in it
  BatchPlace last_batch;       ///< the one that ends at end_offset; proves that this is its log
  ProducerTable producers;
};

std::vector<std::byte> encode_producer_snapshot(const model::PartitionId& partition,
                                                model::Offset end_offset,
                                                model::Offset segment_base, std::uint64_t position,
                                                const BatchPlace& last_batch,
                                                const ProducerTable& producers);
Result<ProducerSnapshot> decode_producer_snapshot(base::Bytes body);

/// Not synced: a damaged one is noticed and made again.
Result<void> write_producer_snapshot(base::FileSystem& files, const std::string& path,
                                     base::Bytes body);
/// malformed if it is damaged or not the snapshot of this partition at this offset.
Result<ProducerSnapshot> load_producer_snapshot(base::FileSystem& files, const std::string& path,
                                                const model::PartitionId& partition,
                                                model::Offset end_offset);

}  // namespace mq::storage
