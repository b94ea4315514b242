#pragma once

#include "base/result.h"

namespace mq::storage {

using base::Error;
using base::Result;

enum class StorageErrc {
  corrupt_batch = 1,    ///< a batch to append is damaged or breaks a rule; nothing was written
  unsupported_format,   ///< a batch of a newer mq: refused on append; in a log it is kept, unread
  batch_too_large,      ///< above the topic's batch.bytes; nothing was written
  offset_out_of_range,  ///< below the log start or above the log end
  storage_full,         ///< the disk is full or nearly so; reads go on, try again later
  io_failed,            ///< the system refused one operation (too many open files); try again
  disk_failed,          ///< the disk is offline until the process starts anew
  partition_corrupt,    ///< damage where no damage may be; nothing of the partition is served
  closed,               ///< the log or its disk was closed or deleted
  not_cached,           ///< the disk is needed: use read_from_disk()
  stale_leader_epoch,   ///< a leader epoch not above the log's last one
  wrong_directory,      ///< the data directory belongs to another cluster or broker
  unknown_format_version,  ///< the data directory was written by a newer mq
  locked,                  ///< another process holds the data directory
  already_exists,          ///< the log exists
  not_found,               ///< no such log
};

const boost::system::error_category& storage_category() noexcept;
Error make_error_code(StorageErrc code) noexcept;

}  // namespace mq::storage

template <>
struct boost::system::is_error_code_enum<mq::storage::StorageErrc> : std::true_type {};
