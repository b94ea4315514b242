#include <algorithm>

#include "base/log.h"
#include "base/mutants.h"
#include "storage/local_log.h"
#include "storage/storage_format.h"

namespace mq::storage {
namespace {

using model::Offset;

constexpr std::size_t kOpenSealedMax = 4;
constexpr std::size_t kReadAtOnceMax = std::size_t{8} << 20;

/// Which file, which byte, which records.
std::string text_of(const model::DamagedPlace& place) {
  auto text =
      fmt::format("{} cannot be read at byte {}", segment_file_name(place.segment), place.position);
  if (place.offset == Offset()) return text;
  if (place.end == Offset()) return text + fmt::format(" (offset {} on)", place.offset);
  return text + fmt::format(" (offsets {} to {})", place.offset, model::advance(place.end, -1));
}

}  // namespace

Result<void> LocalLog::check_readable(Offset from) const {
  if (failure_ || disk_->failed()) return failure();
  if (from < log_start_ || from > end_.offset) return StorageErrc::offset_out_of_range;
  return {};
}

Result<ReadResult> LocalLog::read(Offset from, Offset limit, std::size_t bytes_max) {
  MQ_TRY_VOID(check_readable(from));
  ReadResult result;
  result.end_offset = from;
  if (from >= std::min(limit, end_.offset)) return result;
  if (cutting_) return StorageErrc::not_cached;
  if (tail_.read(from, limit, bytes_max, result)) return result;
  const auto now = spec_.worker->now();
  if (disk_->read_ahead.read(this, from, std::min(limit, end_.offset), bytes_max, now, result))
    return result;
  ReadPlan wanted = plan(from, limit, bytes_max);
  // Even a look at the page cache would make the kernel read ahead.
  if (!wanted.file || wanted.needs_index || wanted.cold) return StorageErrc::not_cached;
  return read_planned(wanted);
}

Result<ReadResult> LocalLog::read_planned(ReadPlan& wanted) {
  wanted.read.source = SegmentRead::Source::page_cache;
  auto done = read_segment(*wanted.file, wanted.read, wanted.damage);
  if (!done) return report_damage(wanted, done.error());
  if (done->damage_met) static_cast<void>(report_damage(wanted, StorageErrc::partition_corrupt));
  remember_cursor(wanted, *done, false);
  return std::move(done->read);
}

/// One turn of one reader: much more than it asked for, in steps. On disk threads, while the
/// coroutine that made it waits; touches only what the plan holds and what never changes.
class LocalLog::ColdTurn {
 public:
  ColdTurn(const LocalLog& log, ReadPlan& wanted, std::size_t bytes)
      : log_(log), wanted_(wanted), bytes_(bytes) {}

  bool step() {
    if (!prepared_) {
      prepared_ = true;
      const auto ready = log_.prepare_on_disk(wanted_);
      if (!ready) return end(ready.error());
      bytes_ = std::min(bytes_, wanted_.read.end - wanted_.read.position);
      buffer_ = base::BufferPool::shared().take(bytes_);
    }
    auto& clock = log_.disk_->home;
    const auto began = clock.now();
    const auto rest = buffer_.bytes().first(bytes_).subspan(loaded_);
    const auto into = rest.first(std::min(rest.size(), ColdReads::kStepBytes));
    const auto got = wanted_.file->read_uncached_at(into, wanted_.read.position + loaded_);
    if (!got) return end(got.error());
    took_ += clock.now() - began;
    loaded_ += *got;
    if (*got == into.size() && loaded_ < bytes_) return true;
    wanted_.read.loaded = {buffer_, base::Bytes(buffer_.bytes()).first(loaded_)};
    wanted_.read.bytes_max = bytes_;
    done = read_segment(*wanted_.file, wanted_.read, wanted_.damage);
    wanted_.read.loaded = {};
    return false;
  }
  /// It came too fast to have come from a disk.
  [[nodiscard]] bool was_cached() const {
    constexpr std::int64_t kBytesPerMsCached = 1'000'000;
    return took_ <= std::chrono::milliseconds(1) * (std::int64_t(loaded_) / kBytesPerMsCached) ||
           took_ < std::chrono::microseconds(50);
  }

  Result<SegmentReadResult> done = make_error_code(StorageErrc::closed);

 private:
  bool end(const Error& error) {
    done = error;
    return false;
  }

  const LocalLog& log_;
  ReadPlan& wanted_;
  std::uint64_t bytes_;
  base::Buffer buffer_;
  std::size_t loaded_ = 0;
  base::Duration took_{};
  bool prepared_ = false;
};

asio::awaitable<Result<ReadResult>> LocalLog::read_from_disk(Offset from, Offset limit,
                                                             std::size_t bytes_max) {
  co_await until_cut();
  MQ_CO_TRY_VOID(check_readable(from));
  ReadResult nothing;
  nothing.end_offset = from;
  if (from >= std::min(limit, end_.offset)) co_return nothing;
  const Visit visit(*this);
  disk_->counters.get("storage_cold_reads_total").add();
  ReadPlan wanted = plan(from, limit, bytes_max);
  wanted.read.source = SegmentRead::Source::disk;
  const std::size_t turn_bytes = disk_->read_ahead.turn_bytes(disk_->cold_reads->readers() + 1);
  ColdTurn turn(*this, wanted, std::max(turn_bytes, std::min(bytes_max, kReadAtOnceMax)));
  ColdReads::Step step = [&turn] { return turn.step(); };
  co_await disk_->cold_reads->take_turn(std::move(step));
  // Meanwhile the log may have been closed, or retention may have passed the offset.
  MQ_CO_TRY_VOID(check_readable(from));
  if (!turn.done) co_return report_damage(wanted, turn.done.error());
  if (turn.done->damage_met)
    static_cast<void>(report_damage(wanted, StorageErrc::partition_corrupt));
  install(wanted);
  remember_cursor(wanted, *turn.done, !turn.was_cached());
  co_return take_ahead(wanted, *std::move(turn.done), bytes_max);
}

/// What was asked for; the rest is kept for the next fetches.
ReadResult LocalLog::take_ahead(const ReadPlan& wanted, SegmentReadResult done,
                                std::size_t bytes_max) const {
  if (done.read.bytes <= bytes_max || done.read.batches.size() != 1) return std::move(done.read);
  const auto now = spec_.worker->now();
  ReadResult result;
  disk_->read_ahead.split(this, wanted.read.from, done.read.end_offset, done.read.batches.front(),
                          wanted.read.limit, bytes_max, now, result);
  return result;
}

LocalLog::ReadPlan LocalLog::plan(Offset from, Offset limit, std::size_t bytes_max) {
  ReadPlan wanted;
  wanted.read.from = from;
  wanted.read.limit = std::min(limit, end_.offset);
  wanted.read.bytes_max = bytes_max;
  const OffsetIndex* index = nullptr;
  if (Sealed* sealed = from < end_.segment_base ? find_sealed(from) : nullptr) {
    wanted.base = sealed->base;
    wanted.bytes = wanted.index_bytes = sealed->bytes;
    wanted.file = sealed->file;
    index = sealed->index.get();
    if (sealed->file) keep_open(sealed->base);
  } else {
    wanted.base = end_.segment_base;
    wanted.bytes = end_.position;
    wanted.file = active_;
    index = &active_index_;
    const auto& known = active_index_.entries();
    if (active_index_from_ > 0 &&
        (known.empty() || from < model::advance(wanted.base, known.front().relative_offset))) {
      wanted.index_bytes = active_index_from_;
      index = active_head_index_.get();
    }
  }
  wanted.read.end = wanted.bytes;
  for (const Cursor& cursor : cursors_) {
    if (cursor.offset != from || cursor.segment_base != wanted.base) continue;
    wanted.read.position = cursor.position;
    wanted.read.at = from;
    wanted.cold = cursor.cold;
    return wanted;
  }
  wanted.needs_index = index == nullptr;
  if (index) wanted.read_from(index->floor(from));
  return wanted;
}

LocalLog::Sealed* LocalLog::find_sealed(Offset offset) {
  const auto found = std::ranges::upper_bound(sealed_, offset, {}, &Sealed::end);
  return found == sealed_.end() ? nullptr : &*found;
}

IndexedSegment LocalLog::indexed(Offset base, std::uint64_t bytes, bool whole,
                                 std::shared_ptr<base::File> file) const {
  return {disk_->files, directory_,     base, bytes, disk_->config.index_stride_bytes,
          whole,        std::move(file)};
}

/// On a disk thread: opens the file and finds the place, as far as that is still to be done.
Result<void> LocalLog::prepare_on_disk(ReadPlan& wanted) const {
  auto& files = disk_->files;
  if (!wanted.file) {
    MQ_TRY(wanted.file, files.open(path_of(segment_file_name(wanted.base)), base::OpenMode::read));
  }
  if (wanted.needs_index) {
    const bool whole = wanted.index_bytes == wanted.bytes;
    MQ_TRY(auto index,
           find_index_for_reading(indexed(wanted.base, wanted.index_bytes, whole, wanted.file)));
    wanted.loaded = std::make_shared<const SegmentIndex>(std::move(index));
    wanted.read_from(wanted.loaded->offsets.floor(wanted.read.from));
  }
  return {};
}

/// Keeps what a disk read has opened and loaded.
void LocalLog::install(const ReadPlan& wanted) {
  if (wanted.base == end_.segment_base) {
    if (wanted.loaded && wanted.index_bytes == active_index_from_)
      active_head_index_ = {wanted.loaded, &wanted.loaded->offsets};
    return;
  }
  Sealed* sealed = find_sealed(wanted.base);
  if (!sealed || sealed->base != wanted.base || sealed->bytes != wanted.bytes) return;
  if (!sealed->file) sealed->file = wanted.file;
  if (wanted.loaded) {
    sealed->index = {wanted.loaded, &wanted.loaded->offsets};
    if (wanted.loaded->end_offset == sealed->end)
      sealed->last_append_time_ms = wanted.loaded->last_append_time_ms;
  }
  keep_open(sealed->base);
}

/// Of the sealed segments only the few used last stay open.
void LocalLog::keep_open(Offset base) {
  if (!open_sealed_.empty() && open_sealed_.back() == base) return;
  std::erase(open_sealed_, base);
  open_sealed_.push_back(base);
  if (open_sealed_.size() <= kOpenSealedMax) return;
  if (Sealed* oldest = find_sealed(open_sealed_.front()); oldest) {
    oldest->file = nullptr;  // what is not synced yet, the flusher keeps open
    oldest->index = nullptr;
  }
  open_sealed_.erase(open_sealed_.begin());
}

void LocalLog::remember_cursor(const ReadPlan& wanted, const SegmentReadResult& result, bool cold) {
  if (result.read.bytes == 0) return;
  // A reader's old cursor gives way to its new one.
  auto slot = std::ranges::find(cursors_, wanted.read.from, &Cursor::offset);
  if (slot == cursors_.end()) {
    slot = cursors_.begin() + static_cast<std::ptrdiff_t>(next_cursor_);
    next_cursor_ = (next_cursor_ + 1) % cursors_.size();
  }
  *slot = {result.read.end_offset, wanted.base, result.position, cold};
}

/// Damage found by a reader is said once per place by name; the rest of the log stays in service.
Error LocalLog::report_damage(const ReadPlan& wanted, const Error& error) {
  if (error.category() == storage_category() &&
      error != make_error_code(StorageErrc::partition_corrupt))
    return error;  // not_cached, unsupported_format
  disk_->counters.get("storage_damaged_reads_total").add();
  auto place = wanted.damage;
  place.segment = wanted.base;
  note_damage(place, error.message());
  return StorageErrc::partition_corrupt;
}

void LocalLog::report_scrub_damage(const model::DamagedPlace& place, const std::string& what) {
  // Meanwhile it may have been closed, or retention may have taken the segment.
  if (!failure() && find_sealed(place.segment)) note_damage(place, what + " (scrub)");
}

void LocalLog::note_damage(const model::DamagedPlace& place, const std::string& what) {
  if (MQ_MUTANT("damage_not_noted")) return;
  // Nobody is given what lies below the start, but who reads near it comes by.
  if (place.end != Offset() && place.end <= log_start_) return;
  const auto [known, fresh] = damage_.emplace(place.segment, place);
  if (!fresh && known->second.position < place.position) return;
  if (!fresh && known->second.position == place.position) {
    if (place.offset != Offset()) known->second.offset = place.offset;
    if (place.end != Offset()) known->second.end = place.end;
    return write_damage_down();
  }
  known->second = place;
  write_damage_down();
  base::log_error("storage", "partition {} ({}): {}: {}", spec_.id.text(), spec_.topic_name,
                  text_of(place), what);
}

/// For the next run.
void LocalLog::write_damage_down() const {
  if (disk_->damage.set(spec_.id, damaged_places())) disk_->note_damage();
}

std::string LocalLog::failure_text() const {
  if (!failure_) return {};
  const bool closed = failure_ == make_error_code(StorageErrc::closed);
  if (problem_.empty() || closed) return failure_.message();
  return fmt::format("{}: {}", failure_.message(), problem_);
}

std::string LocalLog::read_damage() const {
  if (damage_.empty()) return {};
  auto text = text_of(damage_.begin()->second);
  if (damage_.size() > 1) text += fmt::format(", and {} more segment(s)", damage_.size() - 1);
  return text;
}

std::vector<model::DamagedPlace> LocalLog::damaged_places() const {
  std::vector<model::DamagedPlace> places;
  for (const auto& [segment, place] : damage_) places.push_back(place);
  return places;
}

}  // namespace mq::storage
