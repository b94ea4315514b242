#include "storage/log_files.h"

#include <fmt/format.h>

#include "storage/sealed_file.h"
#include "storage/storage_format.h"

namespace mq::storage {
namespace {

constexpr int kNamesMax = 1000;

Result<std::string> free_name(base::FileSystem& files, const std::string& wanted) {
  std::string name = wanted;
  for (int n = 1; n < kNamesMax; ++n) {
    MQ_TRY(const bool taken, files.exists(name));
    if (!taken) break;
    name = fmt::format("{}.{}", wanted, n);
  }
  return name;
}

}  // namespace

Result<void> remove_segment_caches(base::FileSystem& files, const std::string& directory,
                                   model::Offset base) {
  MQ_TRY_VOID(remove_if_there(files, directory + "/" + index_file_name(base)));
  return remove_if_there(files, directory + "/" + time_index_file_name(base));
}

Result<void> empty_log_directory(base::FileSystem& files, const std::string& directory,
                                 model::Offset start) {
  const std::string first = segment_file_name(start);
  MQ_TRY(const auto segment, files.open(directory + "/" + first, base::OpenMode::create));
  MQ_TRY_VOID(segment->truncate(0));
  MQ_TRY_VOID(segment->sync_all());
  MQ_TRY(const auto entries, files.list_directory(directory));
  for (const auto& entry : entries) {
    const bool gone = parse_segment_file_name(entry.name) || parse_cache_file_name(entry.name) ||
                      parse_producers_file_name(entry.name);
    if (!gone || entry.name == first || entry.is_directory) continue;
    MQ_TRY_VOID(files.remove_file(directory + "/" + entry.name));
  }
  return files.sync_directory(directory);
}

Result<std::string> put_away(base::FileSystem& files, const std::string& data,
                             const std::string& name) {
  const std::string unknown = data + "/" + std::string(kUnknownDirectory);
  const auto made = files.make_directory(unknown);
  if (!made && made.error() != make_error_code(base::BaseErrc::already_exists)) return made.error();
  MQ_TRY(auto to, free_name(files, unknown + "/" + name));
  MQ_TRY_VOID(files.rename(data + "/" + name, to));
  MQ_TRY_VOID(files.sync_directory(unknown));
  MQ_TRY_VOID(files.sync_directory(data));
  return to;
}

}  // namespace mq::storage
