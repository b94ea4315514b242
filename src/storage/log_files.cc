#include "storage/log_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

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

/// A directory of its own, durably. Its path.
Result<std::string> make_place_in_unknown(base::FileSystem& files, const std::string& data,
                                          const std::string& name) {
  MQ_TRY(auto to, place_in_unknown(files, data, name));
  MQ_TRY_VOID(files.make_directory(to));
  MQ_TRY_VOID(files.sync_directory(data + "/" + std::string(kUnknownDirectory)));
  MQ_TRY_VOID(files.sync_directory(data));
  return to;
}

/// What the disk cannot read is a hole in the copy.
Result<void> copy_file(base::File& from, std::uint64_t bytes, base::File& to) {
  constexpr std::uint64_t kBlock = 4096;
  std::uint64_t piece = std::uint64_t{1} << 20;
  std::vector<std::byte> buffer(static_cast<std::size_t>(std::min(bytes, piece)));
  for (std::uint64_t at = 0; at < bytes;) {
    const auto wanted = static_cast<std::size_t>(std::min(bytes - at, piece));
    const auto got = from.read_uncached_at(base::MutableBytes(buffer).first(wanted), at);
    if (!got && piece > kBlock) {
      piece = kBlock;
      continue;
    }
    if (!got) {
      at += wanted;
      continue;
    }
    if (*got == 0) break;
    const std::array pieces{base::Bytes(buffer).first(*got)};
    MQ_TRY_VOID(base::write_fully(to, pieces, at));
    at += *got;
  }
  return to.sync_all();
}

Result<void> copy_segments(base::FileSystem& files, const std::string& from, const std::string& to,
                           const std::vector<SegmentBytes>& segments) {
  for (const auto& segment : segments) {
    const auto name = "/" + segment_file_name(segment.base);
    const auto file = files.open(from + name, base::OpenMode::read);
    if (!file && file.error() == make_error_code(base::BaseErrc::not_found)) continue;
    if (!file) return file.error();
    MQ_TRY(const auto copy, files.open(to + name, base::OpenMode::create));
    MQ_TRY_VOID(copy_file(**file, segment.bytes, *copy));
  }
  return files.sync_directory(to);
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

Result<std::string> copy_segments_away(base::FileSystem& files, const std::string& data,
                                       const std::string& name,
                                       const std::vector<SegmentBytes>& segments) {
  MQ_TRY(auto to, make_place_in_unknown(files, data, name));
  const auto copied = copy_segments(files, data + "/" + name, to, segments);
  if (copied) return to;
  // It is tried again: a full disk has no room for one half after the other.
  for (const auto& segment : segments)
    static_cast<void>(files.remove_file(to + "/" + segment_file_name(segment.base)));
  static_cast<void>(files.remove_directory(to));
  return copied.error();
}

namespace {

/// The copy is durable before anything is cut.
Result<void> copy_whole(base::FileSystem& files, const std::string& from, const std::string& to) {
  MQ_TRY(const auto file, files.open(from, base::OpenMode::read));
  MQ_TRY(const auto bytes, file->size());
  MQ_TRY(const auto copy, files.open(to, base::OpenMode::create));
  return copy_file(*file, bytes, *copy);
}

Result<void> end_at(base::FileSystem& files, const std::string& segment, std::uint64_t bytes) {
  MQ_TRY(const auto file, files.open(segment, base::OpenMode::create));
  if (bytes > 0) {
    MQ_TRY_VOID(file->truncate(bytes));
  }
  return file->sync_all();
}

}  // namespace

Result<std::string> put_segments_away(base::FileSystem& files, const std::string& data,
                                      const std::string& name,
                                      const std::vector<model::Offset>& segments, model::Offset end,
                                      std::uint64_t beginning) {
  const std::string from = data + "/" + name;
  std::string to;
  if (!segments.empty()) {
    MQ_TRY(to, make_place_in_unknown(files, data, name));
  }
  for (auto base = segments.rbegin(); base != segments.rend(); ++base) {
    MQ_TRY_VOID(remove_segment_caches(files, from, *base));
    const auto file = "/" + segment_file_name(*base);
    if (beginning > 0 && *base == segments.front()) {
      MQ_TRY_VOID(copy_whole(files, from + file, to + file));
    } else {
      MQ_TRY_VOID(files.rename(from + file, to + file));
    }
  }
  if (!segments.empty()) {
    MQ_TRY_VOID(files.sync_directory(to));
  }
  const auto last = beginning > 0 ? segments.front() : end;
  MQ_TRY_VOID(end_at(files, from + "/" + segment_file_name(last), beginning));
  MQ_TRY_VOID(files.sync_directory(from));
  return to;
}

}  // namespace mq::storage
