#include "storage/time_index.h"

#include <algorithm>
#include <limits>

#include "storage/sealed_file.h"
#include "storage/storage_format.h"

namespace mq::storage {
namespace {

using model::Offset;

constexpr std::size_t kEntryBytes = 16;

Error malformed() { return make_error_code(base::BaseErrc::malformed); }

}  // namespace

void TimeIndex::add(std::int64_t append_time_ms, Offset offset, std::uint64_t position) {
  if (!entries_.empty() && append_time_ms <= entries_.back().append_time_ms) return;
  const auto relative = static_cast<std::uint64_t>(offset.value() - base_offset_.value());
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint32_t>::max();
  if (relative > kMax || position > kMax) return;  // segments are rolled before
  entries_.push_back(
      {append_time_ms, static_cast<std::uint32_t>(relative), static_cast<std::uint32_t>(position)});
  next_entry_at_ = position + stride_bytes_;
}

TimeIndex::Place TimeIndex::floor(std::int64_t time_ms) const noexcept {
  const auto found = std::ranges::lower_bound(entries_, time_ms, {}, &Entry::append_time_ms);
  if (found == entries_.begin()) return {base_offset_, 0};
  const Entry& last_older = *std::prev(found);
  return {model::advance(base_offset_, last_older.relative_offset), last_older.position};
}

std::vector<std::byte> encode_time_index(const TimeIndex& times, std::uint64_t segment_bytes) {
  FieldWriter out;
  out.put(times.base_offset().value());
  out.put(segment_bytes);
  out.put(static_cast<std::uint32_t>(times.entries().size()));
  for (const auto& entry : times.entries()) {
    out.put(entry.append_time_ms);
    out.put(entry.relative_offset);
    out.put(entry.position);
  }
  return {out.bytes().begin(), out.bytes().end()};
}

Result<StoredTimeIndex> decode_time_index(base::Bytes body) {
  FieldReader in(body);
  const Offset base(in.take<std::int64_t>());
  StoredTimeIndex stored{.times = TimeIndex(base, 0)};
  stored.segment_bytes = in.take<std::uint64_t>();
  // Whatever the checksum says, offsets are bounded before they are reckoned with.
  constexpr std::int64_t kBaseMax = std::numeric_limits<std::int64_t>::max() -
                                    std::int64_t{std::numeric_limits<std::uint32_t>::max()};
  if (base < Offset(0) || base > Offset(kBaseMax)) return malformed();
  const auto count = in.take_count(kEntryBytes);
  TimeIndex::Entry last{};
  for (std::uint32_t i = 0; i < count; ++i) {
    TimeIndex::Entry entry{};
    entry.append_time_ms = in.take<std::int64_t>();
    entry.relative_offset = in.take<std::uint32_t>();
    entry.position = in.take<std::uint32_t>();
    const bool rises =
        i == 0 || (entry.append_time_ms > last.append_time_ms &&
                   entry.relative_offset > last.relative_offset && entry.position > last.position);
    if (!rises || entry.position >= stored.segment_bytes) return malformed();
    last = entry;
    stored.times.note(entry.append_time_ms, model::advance(base, entry.relative_offset),
                      entry.position);
  }
  if (!in.finished()) return malformed();
  return stored;
}

Result<void> write_time_index(base::FileSystem& files, const std::string& path,
                              const TimeIndex& times, std::uint64_t segment_bytes) {
  return write_cache_file(files, path, kTimeIndexMagic, encode_time_index(times, segment_bytes));
}

Result<TimeIndex> load_time_index(base::FileSystem& files, const std::string& path,
                                  Offset base_offset, std::uint64_t segment_bytes) {
  MQ_TRY(const auto body, load_sealed(files, path, kTimeIndexMagic));
  MQ_TRY(auto stored, decode_time_index(body));
  if (stored.times.base_offset() != base_offset || stored.segment_bytes != segment_bytes)
    return malformed();
  return std::move(stored.times);
}

}  // namespace mq::storage
