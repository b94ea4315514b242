#include "storage/segment_reader.h"

#include <algorithm>
#include <array>

#include "base/mutants.h"
#include "model/record_batch.h"
#include "storage/batch_scanner.h"
#include "storage/storage_format.h"

namespace mq::storage {
namespace {

namespace format = model::batch_format;
using model::ModelErrc;
using model::Offset;
using model::RecordBatchView;

/// Read at once while looking for the first batch, which is at most an index stride away.
constexpr std::size_t kSearchBytes = std::size_t{64} << 10;

Offset stamped_base(base::Bytes batch) {
  return Offset(base::load_le<std::int64_t>(batch.data() + format::kBaseOffset));
}

/// A damaged batch, of which only the stamp can be relied on.
struct Before {
  Offset base;
  Offset stated_end;  ///< as far as that is not what is damaged; -1: not there
};

Before before_of(base::Bytes batch) {
  Before before{stamped_base(batch), Offset()};
  // An offset that no batch can have would overflow.
  if (batch.size() < format::kHeaderBytes || before.base.value() >= INT64_MAX / 2) return before;
  const auto delta = base::load_le<std::uint32_t>(batch.data() + format::kLastOffsetDelta);
  before.stated_end = model::advance(before.base, std::int64_t{delta} + 1);
  return before;
}

class SegmentReading {
 public:
  SegmentReading(base::File& file, const SegmentRead& wanted)
      : file_(file), wanted_(wanted), position_(wanted.position), expected_(wanted.at) {}

  Result<SegmentReadResult> run(model::DamagedPlace& damage) {
    std::size_t bytes = std::max(wanted_.bytes_max, kSearchBytes);
    while (position_ < wanted_.end) {
      const auto loaded = load(bytes);
      const auto walked = loaded ? walk() : loaded;
      damage = damage_ ? *damage_ : here();
      if (!walked) return walked.error();
      if (taken_ > 0 || done_) break;
      position_ += walked_;  // all of it lies below `from`, or the first batch is not whole yet
      bytes = std::max({wanted_.bytes_max, kSearchBytes, needed_});
      // Nothing was gone over and no more is there to load: this cannot be a batch.
      if (walked_ == 0 && loaded_.size() >= std::min<std::uint64_t>(bytes, wanted_.end - position_))
        return make_error_code(StorageErrc::partition_corrupt);
    }
    // The last batches do not hold, and `from` lies in them.
    if (taken_ == 0 && !done_ && damage_) return make_error_code(StorageErrc::partition_corrupt);
    return result();
  }

 private:
  Result<void> load(std::size_t bytes) {
    bytes = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, wanted_.end - position_));
    walked_ = needed_ = 0;
    if (position_ == wanted_.position && bytes <= wanted_.loaded.bytes.size()) {
      buffer_ = wanted_.loaded.owner;
      loaded_ = wanted_.loaded.bytes.first(bytes);
      return {};
    }
    buffer_ = base::BufferPool::shared().take(bytes);
    const auto into = buffer_.bytes().first(bytes);
    const auto got = wanted_.source == SegmentRead::Source::disk
                         ? file_.read_at(into, position_)
                         : file_.read_cached_at(into, position_);
    if (!got) {
      if (got.error() == make_error_code(base::BaseErrc::would_block))
        return StorageErrc::not_cached;
      return got.error();
    }
    loaded_ = base::Bytes(into).first(*got);
    // Less than was there when it was written: cut from outside.
    if (loaded_.size() < bytes) return StorageErrc::partition_corrupt;
    return {};
  }

  /// Goes over the loaded batches and takes what is wanted. Afterwards either something was taken,
  /// or done_, or more must be loaded from walked_ on (at least needed_ bytes).
  Result<void> walk() {
    start_ = 0;
    while (walked_ < loaded_.size()) {
      const base::Bytes rest = loaded_.subspan(walked_);
      const auto parsed = check(rest);
      if (!parsed && parsed.error() == make_error_code(ModelErrc::incomplete_batch)) return {};
      if (!parsed) {
        const auto error = refused(parsed.error());
        const bool damaged = error == make_error_code(StorageErrc::partition_corrupt);
        if (damaged && taken_ == 0 && step_over(rest)) continue;
        if (damaged && !damage_) {
          damage_ = here();
          damage_->end = base_behind(rest);
        } else if (damaged && stepped_ && damage_->end == Offset()) {
          damage_->end = end_at(*stepped_, rest, position_ + walked_);
        }
        if (taken_ > 0) return {};  // whoever comes for that batch gets the error
        return error;
      }
      const RecordBatchView& batch = *parsed;
      const bool in_place =
          !stepped_ || is_in_place(*stepped_, rest, position_ + walked_).value_or(true);
      if (in_place && damage_ && damage_->end == Offset()) damage_->end = batch.base_offset();
      const bool follows = expected_ == Offset() || batch.base_offset() == expected_;
      if (in_place) stepped_.reset();
      if (!in_place || !follows) return taken_ > 0 ? Result<void>{} : corrupt_here();
      expected_ = batch.end_offset();
      if (batch.end_offset() > wanted_.from) {
        done_ = true;
        if (batch.base_offset() > wanted_.from && taken_ == 0)
          return make_error_code(StorageErrc::partition_corrupt);
        if (batch.end_offset() > wanted_.limit ||
            (taken_ > 0 && taken_ + batch.batch_bytes() > wanted_.bytes_max))
          return {};
        if (taken_ == 0) start_ = walked_;
        taken_ += batch.batch_bytes();
        end_offset_ = batch.end_offset();
      }
      walked_ += batch.batch_bytes();
    }
    return {};
  }

  Result<RecordBatchView> check(base::Bytes rest) {
    const auto length = model::peek_batch_bytes(rest);
    if (!length) {
      needed_ = format::kHeaderBytes;
      return length.error();
    }
    needed_ = *length;
    if (rest.size() < *length) {
      if (wanted_.end - position_ - walked_ < *length) return ModelErrc::corrupt_batch;
      return ModelErrc::incomplete_batch;
    }
    // LOG-4: the page cache, too, holds what came from the disk.
    if (MQ_MUTANT("page_reads_unchecked") && wanted_.source == SegmentRead::Source::page_cache)
      return RecordBatchView::parse_header(rest);
    return RecordBatchView::parse_first(rest);
  }

  /// What it begins with says where it begins and how long it is, and can be relied on: what is
  /// wanted may lie behind it.
  bool step_over(base::Bytes rest) {
    const auto bytes = model::peek_batch_bytes(rest);
    if (!bytes || *bytes > rest.size() || rest.size() < format::kStableBytes) return false;
    if (!model::stamp_crc_holds(rest)) return false;
    const Offset base = stamped_base(rest);
    const bool follows = expected_ == Offset() || base == expected_;
    if (!follows || base > wanted_.from) return false;
    // Of several only the newest may be followed by what is wanted; the first is told.
    if (!damage_ || damage_->end != Offset()) {
      damage_ = here();
      damage_->offset = base;
    }
    expected_ = Offset();
    stepped_ = before_of(rest);
    walked_ += *bytes;
    return true;
  }

  /// Whether the batch at `position`, whose header this is, begins where it says, behind a damaged
  /// one. Nothing: only its own checksum says so. Whoever trims goes by it, and must not lose what
  /// is sound.
  std::optional<bool> is_in_place(const Before& before, base::Bytes header,
                                  std::uint64_t position) {
    const Offset base = stamped_base(header);
    if (!may_stand_behind(before.base, base)) return false;
    if (before.stated_end == base) return true;
    const auto parsed = RecordBatchView::parse_header(header);
    if (!parsed) return std::nullopt;
    const auto after = header_at(position + parsed->batch_bytes());
    if (!after || !model::stamp_crc_holds(*after)) return std::nullopt;
    return stamped_base(*after) == parsed->end_offset();
  }

  /// Where the damaged one's reading goes on, if this stands behind it; -1: not known.
  Offset end_at(const Before& before, base::Bytes header, std::uint64_t position) {
    const bool holds = header.size() >= format::kStableBytes && model::stamp_crc_holds(header);
    return holds && is_in_place(before, header, position).value_or(false) ? stamped_base(header)
                                                                          : Offset();
  }

  /// Where the batch behind a damaged one begins; -1: nothing says so that can be relied on.
  Offset base_behind(base::Bytes rest) {
    const auto bytes = model::peek_batch_bytes(rest);
    if (!bytes || rest.size() < format::kStableBytes || !model::stamp_crc_holds(rest)) return {};
    const std::uint64_t next = position_ + walked_ + *bytes;
    const auto header = header_at(next);
    return header ? end_at(before_of(rest), *header, next) : Offset();
  }

  std::optional<std::array<std::byte, format::kHeaderBytes>> header_at(std::uint64_t position) {
    std::array<std::byte, format::kHeaderBytes> header{};
    if (position + header.size() > wanted_.end) return std::nullopt;
    const auto got = wanted_.source == SegmentRead::Source::disk
                         ? file_.read_at(header, position)
                         : file_.read_cached_at(header, position);
    if (!got || *got < header.size()) return std::nullopt;
    return header;
  }

  [[nodiscard]] model::DamagedPlace here() const {
    return {.segment = {}, .position = position_ + walked_, .offset = expected_, .end = {}};
  }
  Error corrupt_here() {
    if (!damage_) damage_ = here();
    return StorageErrc::partition_corrupt;
  }

  [[nodiscard]] static Error refused(const Error& error) {
    return error == make_error_code(ModelErrc::unsupported_format)
               ? make_error_code(StorageErrc::unsupported_format)
               : make_error_code(StorageErrc::partition_corrupt);
  }

  [[nodiscard]] SegmentReadResult result() const {
    SegmentReadResult result;
    result.read.end_offset = wanted_.from;
    result.position = position_ + start_ + taken_;
    result.damage_met = damage_.has_value();
    if (taken_ == 0) return result;
    result.read.batches.push_back({buffer_, loaded_.subspan(start_, taken_)});
    result.read.bytes = taken_;
    result.read.end_offset = end_offset_;
    return result;
  }

  base::File& file_;
  const SegmentRead& wanted_;
  std::uint64_t position_;  // of loaded_
  base::Buffer buffer_;
  base::Bytes loaded_;
  std::size_t walked_ = 0;
  std::size_t needed_ = 0;
  std::size_t start_ = 0;
  std::size_t taken_ = 0;
  bool done_ = false;
  std::optional<model::DamagedPlace> damage_;
  std::optional<Before> stepped_;  // the batch before is damaged and was stepped over
  Offset expected_;                // where the next batch begins; -1: not known
  Offset end_offset_;
};

}  // namespace

Result<SegmentReadResult> read_segment(base::File& file, const SegmentRead& wanted,
                                       model::DamagedPlace& damage) {
  return SegmentReading(file, wanted).run(damage);
}

namespace {

/// As far as the headers hold.
Result<void> fill_index(SegmentIndex& index, base::File& file, Offset base_offset,
                        std::uint64_t bytes) {
  BatchScanner scanner(file, {.position = 0, .expected = base_offset}, bytes,
                       BatchScanner::Depth::headers);
  MQ_TRY_VOID(scanner.next());
  while (!scanner.at_end()) {
    if (scanner.state() == BatchState::unsupported) return StorageErrc::unsupported_format;
    if (scanner.state() != BatchState::good) return StorageErrc::partition_corrupt;
    const RecordBatchView& batch = scanner.view();
    index.offsets.note(batch.base_offset(), scanner.position());
    index.times.note(batch.append_time_ms(), batch.base_offset(), scanner.position());
    if (index.first_append_time_ms < 0) index.first_append_time_ms = batch.append_time_ms();
    index.last_append_time_ms = batch.append_time_ms();
    if (index.epoch_starts.empty() || index.last_leader_epoch != batch.leader_epoch())
      index.epoch_starts.push_back({batch.leader_epoch(), batch.base_offset()});
    index.last_leader_epoch = batch.leader_epoch();
    index.end_offset = batch.end_offset();
    MQ_TRY_VOID(scanner.next());
  }
  return {};
}

SegmentIndex empty_index(Offset base_offset, std::uint64_t bytes, std::uint64_t stride_bytes) {
  SegmentIndex index{.offsets = OffsetIndex(base_offset, stride_bytes)};
  index.times = TimeIndex(base_offset, stride_bytes);
  index.end_offset = base_offset;
  index.segment_bytes = bytes;
  return index;
}

}  // namespace

Result<SegmentIndex> rebuild_segment_index(base::File& file, Offset base_offset,
                                           std::uint64_t bytes, std::uint64_t stride_bytes) {
  auto index = empty_index(base_offset, bytes, stride_bytes);
  MQ_TRY_VOID(fill_index(index, file, base_offset, bytes));
  return index;
}

Result<std::optional<TimedBatch>> find_batch_by_time(base::File& file, Offset base_offset,
                                                     std::uint64_t bytes, TimeIndex::Place near,
                                                     std::int64_t time_ms, std::uint64_t& damage) {
  const bool from_start = near.position == 0;
  const auto whole = [&] {
    return find_batch_by_time(file, base_offset, bytes, {base_offset, 0}, time_ms, damage);
  };
  BatchScanner scanner(file, {.position = near.position, .expected = near.base_offset}, bytes,
                       BatchScanner::Depth::headers);
  MQ_TRY_VOID(scanner.next());
  bool first = true;
  while (!scanner.at_end()) {
    damage = scanner.position();
    if (scanner.state() == BatchState::unsupported) return StorageErrc::unsupported_format;
    if (scanner.state() != BatchState::good) {
      if (from_start) return StorageErrc::partition_corrupt;
      return whole();
    }
    const RecordBatchView& batch = scanner.view();
    if (batch.append_time_ms() >= time_ms) {
      // The index names a batch that is older than what is looked for.
      if (first && !from_start) return whole();
      return std::optional(TimedBatch{batch.base_offset(), batch.append_time_ms()});
    }
    first = false;
    MQ_TRY_VOID(scanner.next());
  }
  return std::optional<TimedBatch>();
}

namespace {

std::string path_in(const IndexedSegment& segment, const std::string& name) {
  return segment.directory + "/" + name;
}

Result<SegmentIndex> index_anew(const IndexedSegment& segment) {
  auto file = segment.file;
  if (!file) {
    const auto path = path_in(segment, segment_file_name(segment.base));
    MQ_TRY(file, segment.files.open(path, base::OpenMode::read));
  }
  return rebuild_segment_index(*file, segment.base, segment.bytes, segment.stride_bytes);
}

bool worth_storing(const IndexedSegment& segment) {
  return segment.whole && segment.bytes > segment.stride_bytes;
}

}  // namespace

Result<SegmentIndex> find_segment_index(const IndexedSegment& segment) {
  const auto path = path_in(segment, index_file_name(segment.base));
  auto stored = load_segment_index(segment.files, path, segment.base, segment.bytes);
  if (stored) return stored;
  MQ_TRY(auto made, index_anew(segment));
  if (worth_storing(segment)) static_cast<void>(write_segment_index(segment.files, path, made));
  return made;
}

Result<SegmentIndex> find_index_for_reading(const IndexedSegment& segment) {
  auto found = find_segment_index(segment);
  if (found || found.error() != make_error_code(StorageErrc::partition_corrupt)) return found;
  auto index = empty_index(segment.base, segment.bytes, segment.stride_bytes);
  auto file = segment.file;
  if (!file) {
    const auto path = path_in(segment, segment_file_name(segment.base));
    MQ_TRY(file, segment.files.open(path, base::OpenMode::read));
  }
  const auto filled = fill_index(index, *file, segment.base, segment.bytes);
  if (!filled && filled.error() != make_error_code(StorageErrc::partition_corrupt))
    return filled.error();
  return index;
}

Result<TimeIndex> find_time_index(const IndexedSegment& segment) {
  const auto path = path_in(segment, time_index_file_name(segment.base));
  auto stored = load_time_index(segment.files, path, segment.base, segment.bytes);
  if (stored) return stored;
  MQ_TRY(auto made, index_anew(segment));
  if (worth_storing(segment))
    static_cast<void>(write_time_index(segment.files, path, made.times, segment.bytes));
  return std::move(made.times);
}

}  // namespace mq::storage
