#include "mqctl/verbs/log_files.h"

#include <fmt/format.h>

#include "mqctl/cli/failure.h"

namespace mq::mqctl {
namespace {

[[noreturn]] void throw_unreadable(const std::string& path, const base::Error& error) {
  auto failure = make_failure(protocol::WireError::file_unreadable,
                              fmt::format("{} cannot be read", path), error.message(),
                              "give a data directory, a partition's directory or a .log file");
  failure.item = path;
  throw Failed(std::move(failure));
}

}  // namespace

std::vector<storage::PartitionDirectory> find_partitions(base::FileSystem& files,
                                                         const std::string& path) {
  auto listing = storage::list_data_directory(files, path);
  if (listing && (listing->identity || !listing->partitions.empty()))
    return std::move(listing->partitions);
  auto partition = storage::list_partition_directory(files, path);
  if (!partition) throw_unreadable(path, partition.error());
  std::vector<storage::PartitionDirectory> one;
  one.push_back(std::move(*partition));
  return one;
}

std::string partition_name(const storage::PartitionDirectory& partition) {
  const auto slash = partition.path.rfind('/');
  const auto last = slash == std::string::npos ? partition.path : partition.path.substr(slash + 1);
  return partition.topic_name.empty() ? last : fmt::format("{} ({})", partition.topic_name, last);
}

}  // namespace mq::mqctl
