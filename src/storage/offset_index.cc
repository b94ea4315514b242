#include "storage/offset_index.h"

#include <algorithm>
#include <limits>

#include "storage/sealed_file.h"
#include "storage/storage_format.h"

namespace mq::storage {
namespace {

Error malformed() { return make_error_code(base::BaseErrc::malformed); }

}  // namespace

void OffsetIndex::add(model::Offset offset, std::uint64_t position) {
  const auto relative = static_cast<std::uint64_t>(offset.value() - base_offset_.value());
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint32_t>::max();
  if (relative > kMax || position > kMax) return;  // segments are rolled before
  entries_.push_back({static_cast<std::uint32_t>(relative), static_cast<std::uint32_t>(position)});
  next_entry_at_ = position + stride_bytes_;
}

TimeIndex::Place OffsetIndex::floor(model::Offset offset) const noexcept {
  const std::int64_t relative = offset.value() - base_offset_.value();
  const auto above = std::ranges::upper_bound(
      entries_, relative, {}, [](const Entry& e) { return std::int64_t{e.relative_offset}; });
  if (above == entries_.begin()) return {base_offset_, 0};
  const Entry& found = *std::prev(above);
  return {model::advance(base_offset_, found.relative_offset), found.position};
}

std::vector<std::byte> encode_segment_index(const SegmentIndex& index) {
  FieldWriter out;
  out.put(index.offsets.base_offset().value());
  out.put(index.end_offset.value());
  out.put(index.segment_bytes);
  out.put(index.first_append_time_ms);
  out.put(index.last_append_time_ms);
  out.put(index.last_leader_epoch.value());
  out.put(static_cast<std::uint32_t>(index.offsets.entries().size()));
  for (const auto& entry : index.offsets.entries()) {
    out.put(entry.relative_offset);
    out.put(entry.position);
  }
  out.put(static_cast<std::uint32_t>(index.epoch_starts.size()));
  for (const auto& start : index.epoch_starts) {
    out.put(start.leader_epoch.value());
    out.put(start.start_offset.value());
  }
  return {out.bytes().begin(), out.bytes().end()};
}

Result<SegmentIndex> decode_segment_index(base::Bytes body) {
  FieldReader in(body);
  SegmentIndex index{.offsets = OffsetIndex(model::Offset(in.take<std::int64_t>()), 0)};
  index.end_offset = model::Offset(in.take<std::int64_t>());
  index.segment_bytes = in.take<std::uint64_t>();
  index.first_append_time_ms = in.take<std::int64_t>();
  index.last_append_time_ms = in.take<std::int64_t>();
  index.last_leader_epoch = model::LeaderEpoch(in.take<std::int32_t>());
  // Whatever the checksum says, offsets are bounded before they are reckoned with.
  const model::Offset base = index.offsets.base_offset();
  if (base < model::Offset(0) || index.end_offset < base) return malformed();
  const std::int64_t span = index.end_offset.value() - base.value();
  const auto entries = in.take_count(sizeof(OffsetIndex::Entry));
  std::int64_t last_position = -1;
  for (std::uint32_t i = 0; i < entries; ++i) {
    const auto relative = in.take<std::uint32_t>();
    const auto position = in.take<std::uint32_t>();
    if (position <= last_position || position >= index.segment_bytes || relative > span)
      return malformed();
    last_position = position;
    index.offsets.note(model::advance(base, relative), position);
  }
  index.epoch_starts.resize(in.take_count(12));
  for (auto& start : index.epoch_starts) {
    start.leader_epoch = model::LeaderEpoch(in.take<std::int32_t>());
    start.start_offset = model::Offset(in.take<std::int64_t>());
  }
  if (!in.finished()) return malformed();
  return index;
}

Result<void> write_segment_index(base::FileSystem& files, const std::string& path,
                                 const SegmentIndex& index) {
  return write_cache_file(files, path, kIndexMagic, encode_segment_index(index));
}

Result<SegmentIndex> load_segment_index(base::FileSystem& files, const std::string& path,
                                        model::Offset base_offset, std::uint64_t segment_bytes) {
  MQ_TRY(const auto body, load_sealed(files, path, kIndexMagic));
  MQ_TRY(auto index, decode_segment_index(body));
  if (index.offsets.base_offset() != base_offset || index.segment_bytes != segment_bytes)
    return malformed();
  return index;
}

}  // namespace mq::storage
