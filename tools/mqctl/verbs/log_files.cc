#include "mqctl/verbs/log_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "mqctl/cli/failure.h"
#include "mqctl/data/record_json.h"

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

LockedData lock_data_of(base::FileSystem& files, const storage::PartitionDirectory& partition,
                        const std::string& what) {
  const auto slash = partition.path.rfind('/');
  LockedData data;
  data.path =
      slash == std::string::npos ? "." : partition.path.substr(0, std::max<std::size_t>(slash, 1));
  const auto identity = storage::read_identity(files, data.path);
  if (!identity || !*identity) {
    auto failure =
        make_failure(protocol::WireError::wrong_directory, what,
                     fmt::format("{} is no data directory: it has no identity", data.path),
                     "give a partition's directory inside its data directory");
    failure.item = partition.path;
    throw Failed(std::move(failure));
  }
  const auto lock_path = data.path + "/lock";
  auto lock = files.lock(lock_path);
  if (!lock) {
    const bool held = lock.error() == make_error_code(base::BaseErrc::locked);
    auto failure = make_failure(
        held ? protocol::WireError::directory_locked : protocol::WireError::file_unreadable, what,
        held ? fmt::format("{} is in use by {}", data.path, files.lock_holder(lock_path))
             : fmt::format("{}: {}", lock_path, lock.error().message()),
        held ? "stop that broker first" : "");
    failure.item = partition.path;
    throw Failed(std::move(failure));
  }
  data.lock = std::move(*lock);
  return data;
}

std::string partition_name(const storage::PartitionDirectory& partition) {
  const auto slash = partition.path.rfind('/');
  const auto last = slash == std::string::npos ? partition.path : partition.path.substr(slash + 1);
  return partition.topic_name.empty() ? last : fmt::format("{} ({})", partition.topic_name, last);
}

Value stored_record_value(const storage::PartitionDirectory& partition,
                          const model::RecordView& record) {
  std::vector<HeaderView> headers;
  for (const auto& header : record.headers) headers.push_back({header.name, header.value});
  RecordView shown;
  shown.topic = partition.topic_name;
  shown.partition = partition.id.partition;
  shown.offset = record.offset.value();
  shown.timestamp = Timestamp(Duration(record.timestamp_ms));
  shown.key = record.key;
  shown.value = record.value;
  shown.headers = headers;
  return record_value(shown);
}

}  // namespace mq::mqctl
