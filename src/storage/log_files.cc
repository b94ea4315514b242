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

/// Where a directory of that name can be kept.
Result<std::string> place_in_unknown(base::FileSystem& files, const std::string& data,
                                     const std::string& name) {
  const std::string unknown = data + "/" + std::string(kUnknownDirectory);
  const auto made = files.make_directory(unknown);
  if (!made && made.error() != make_error_code(base::BaseErrc::already_exists)) return made.error();
  return free_name(files, unknown + "/" + name);
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
  MQ_TRY(auto to, place_in_unknown(files, data, name));
  MQ_TRY_VOID(files.rename(data + "/" + name, to));
  MQ_TRY_VOID(files.sync_directory(data + "/" + std::string(kUnknownDirectory)));
  MQ_TRY_VOID(files.sync_directory(data));
  return to;
}

Result<PutAside> measure_put_aside(base::FileSystem& files, const std::string& data) {
  PutAside aside;
  const std::string unknown = data + "/" + std::string(kUnknownDirectory);
  MQ_TRY(const bool there, files.exists(unknown));
  if (!there) return aside;
  MQ_TRY(const auto logs, files.list_directory(unknown));
  for (const auto& log : logs) {
    ++aside.logs;
    if (!log.is_directory) continue;
    const auto entries = files.list_directory(unknown + "/" + log.name);
    if (!entries) continue;
    for (const auto& entry : *entries) {
      if (entry.is_directory) continue;
      const auto path = unknown + "/" + log.name + "/" + entry.name;
      const auto file = files.open(path, base::OpenMode::read);
      if (!file) continue;
      const auto bytes = (*file)->size();
      if (bytes) aside.bytes += *bytes;
    }
  }
  return aside;
}

Result<std::string> put_segments_away(base::FileSystem& files, const std::string& data,
                                      const std::string& name,
                                      const std::vector<model::Offset>& segments,
                                      model::Offset end) {
  const std::string from = data + "/" + name;
  std::string to;
  if (!segments.empty()) {
    MQ_TRY(to, place_in_unknown(files, data, name));
    MQ_TRY_VOID(files.make_directory(to));
    MQ_TRY_VOID(files.sync_directory(data + "/" + std::string(kUnknownDirectory)));
    MQ_TRY_VOID(files.sync_directory(data));
  }
  for (auto base = segments.rbegin(); base != segments.rend(); ++base) {
    MQ_TRY_VOID(remove_segment_caches(files, from, *base));
    const auto file = "/" + segment_file_name(*base);
    MQ_TRY_VOID(files.rename(from + file, to + file));
  }
  if (!segments.empty()) {
    MQ_TRY_VOID(files.sync_directory(to));
  }
  MQ_TRY(const auto next, files.open(from + "/" + segment_file_name(end), base::OpenMode::create));
  MQ_TRY_VOID(next->sync_all());
  MQ_TRY_VOID(files.sync_directory(from));
  return to;
}

}  // namespace mq::storage
