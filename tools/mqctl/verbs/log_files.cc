#include "mqctl/verbs/log_files.h"

#include <fmt/format.h>

#include "mqctl/cli/failure.h"

namespace mq::mqctl {
namespace {

[[noreturn]] void throw_unreadable(const std::string& path, std::string why) {
  auto failure =
      make_failure(protocol::WireError::file_unreadable, fmt::format("{} cannot be read", path),
                   std::move(why), "give a data directory, a partition's directory or a .log file");
  failure.item = path;
  throw Failed(std::move(failure));
}

}  // namespace

std::vector<storage::PartitionDirectory> find_partitions(base::FileSystem& files,
                                                         const std::string& path) {
  // The folder of `local up` holds its data directory under this name.
  for (const auto& place : {path, path + "/data"}) {
    auto listing = storage::list_data_directory(files, place);
    if (listing && (listing->identity || !listing->partitions.empty()))
      return std::move(listing->partitions);
  }
  auto partition = storage::list_partition_directory(files, path);
  if (!partition) throw_unreadable(path, partition.error().message());
  if (partition->segments.empty()) throw_unreadable(path, "there are no logs in it");
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
