#pragma once

#include <string>
#include <vector>

#include "base/file_system.h"
#include "storage/log_inspect.h"

namespace mq::mqctl {

/// What a path given to `mqctl log` holds: the partitions of a data directory, one partition's
/// directory, or one segment file. Throws Failed when it is none of these.
std::vector<storage::PartitionDirectory> find_partitions(base::FileSystem& files,
                                                         const std::string& path);
/// "orders (4f1c…-0)", or its directory.
std::string partition_name(const storage::PartitionDirectory& partition);

}  // namespace mq::mqctl
