#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "model/record_reader.h"
#include "mqctl/cli/value.h"
#include "storage/log_inspect.h"

namespace mq::mqctl {

/// What a path given to `mqctl log` holds: the partitions of a data directory, one partition's
/// directory, or one segment file. Throws Failed when it is none of these.
std::vector<storage::PartitionDirectory> find_partitions(base::FileSystem& files,
                                                         const std::string& path);
/// The data directory that a partition's directory lies in, locked so that no broker starts on it.
/// Throws Failed (DIRECTORY_LOCKED, with the holder's pid) while one works there. `what` says what
/// was not done.
struct LockedData {
  std::string path;
  std::unique_ptr<base::FileLock> lock;
};
LockedData lock_data_of(base::FileSystem& files, const storage::PartitionDirectory& partition,
                        const std::string& what);
/// "orders (4f1c…-0)", or its directory.
std::string partition_name(const storage::PartitionDirectory& partition);
/// The line of `consume -J` for a record that was read from the partition's files.
Value stored_record_value(const storage::PartitionDirectory& partition,
                          const model::RecordView& record);

}  // namespace mq::mqctl
