#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "config/broker_config.h"

namespace mq::broker {

/// What the process finds around it.
struct Surroundings {
  bool root = false;
  std::uint64_t open_files_max = 0;  ///< RLIMIT_NOFILE
};
Surroundings look_around();

/// The machine's boot, 32 hexadecimal digits; empty if nothing tells. `passed` (or null) comes from
/// the service manager: the sandbox of the service hides /proc/sys.
std::string read_boot_id(base::FileSystem& files, const char* passed);

/// The mount of each data directory, as lines "id path" of a file that was written outside of the
/// service's sandbox, where every start sees mounts of its own; empty where the file says nothing.
std::vector<std::string> read_mount_ids(base::FileSystem& files, const char* file,
                                        const std::vector<std::string>& directories);
/// The lines of that file. Directories that are not there, or a kernel that does not tell mounts
/// apart for ever (before 6.8), have none.
std::string mount_lines(const std::vector<std::string>& directories);

/// Raises the soft limit of open files to the hard one.
void raise_open_files_limit();

/// One line for each thing that is allowed but worth knowing: running as root, listening on the
/// network while no one has to authenticate, few open files.
std::vector<std::string> start_warnings(const config::BrokerConfig& config,
                                        const Surroundings& around);

/// How many connections may be open, so that data files always find a descriptor.
std::size_t connections_possible(const config::BrokerConfig& config, const Surroundings& around);
/// How many partitions may be made, so that connections and new segments find one too: a process
/// that runs out of descriptors can neither roll a segment nor sync its directory.
std::size_t partitions_possible(const config::BrokerConfig& config, const Surroundings& around);
/// Why so many partitions that are there already cannot be served; empty: they can.
std::string why_not_served(const config::BrokerConfig& config, const Surroundings& around,
                           std::size_t partitions);

}  // namespace mq::broker
