#include <algorithm>

#include "storage/local_log.h"
#include "storage/storage_format.h"

namespace mq::storage {

using model::Offset;

asio::awaitable<Result<TimeLookup>> LocalLog::find_time(std::int64_t time_ms) {
  co_await until_cut();
  MQ_CO_TRY_VOID(check_readable(log_start_));
  TimeLookup none;
  none.offset = end_.offset;
  if (end_.append_time_ms < time_ms || end_.offset == log_start_) co_return none;
  const Visit visit(*this);
  MQ_CO_TRY(const Offset base, co_await find_segment_by_time(time_ms));
  TimePlan wanted = plan_time(base, time_ms);
  Result<std::optional<TimedBatch>> found = make_error_code(StorageErrc::closed);
  const auto work = [this, &wanted, &found] { found = search_time(wanted); };
  co_await disk_->cold_reads->run(work);
  MQ_CO_TRY_VOID(check_readable(log_start_));
  ReadPlan place;
  place.base = base;
  place.damage.position = wanted.damage;
  if (!found) co_return report_damage(place, found.error());
  if (wanted.loaded && base == end_.segment_base && wanted.index_bytes == active_index_from_)
    active_head_times_ = wanted.loaded;
  none.offset = end_.offset;
  if (!*found) co_return none;
  TimeLookup lookup;
  // A trimmed log starts inside a batch, or above the segment that was searched.
  lookup.offset = std::max((*found)->base_offset, log_start_);
  lookup.append_time_ms = (*found)->append_time_ms;
  co_return lookup;
}

/// The base of the first segment whose last append was at `time_ms` or later; that of the active
/// one when no sealed one's was.
asio::awaitable<Result<Offset>> LocalLog::find_segment_by_time(std::int64_t time_ms) {
  std::size_t first = 0;
  std::size_t last = sealed_.size();
  while (first < last) {
    const std::size_t middle = first + (last - first) / 2;
    if (sealed_[middle].last_append_time_ms < 0) {
      const Offset base = sealed_[middle].base;
      MQ_CO_TRY_VOID(co_await load_append_time(base));
      MQ_CO_TRY_VOID(check_readable(log_start_));
      // Meanwhile segments may have come and gone: begin again, with one time more known.
      first = 0;
      last = sealed_.size();
    } else if (sealed_[middle].last_append_time_ms >= time_ms) {
      last = middle;
    } else {
      first = middle + 1;
    }
  }
  const Offset base = first < sealed_.size() ? sealed_[first].base : end_.segment_base;
  co_return base;
}

LocalLog::TimePlan LocalLog::plan_time(Offset base, std::int64_t time_ms) {
  TimePlan wanted;
  wanted.time_ms = time_ms;
  wanted.base = base;
  wanted.near = {base, 0};
  if (base != end_.segment_base) {
    const Sealed* sealed = find_sealed(base);
    wanted.bytes = wanted.index_bytes = sealed->bytes;
    wanted.file = sealed->file;
    return wanted;
  }
  wanted.bytes = end_.position;
  wanted.file = active_;
  const auto& known = active_times_.entries();
  const bool in_head =
      active_index_from_ > 0 && (known.empty() || time_ms <= known.front().append_time_ms);
  if (!in_head) {
    wanted.needs_index = false;
    wanted.near = active_times_.floor(time_ms);
  } else if (active_head_times_) {
    wanted.needs_index = false;
    wanted.near = active_head_times_->floor(time_ms);
  } else {
    wanted.index_bytes = active_index_from_;
  }
  return wanted;
}

/// On a disk thread: touches only what the plan holds and what never changes.
Result<std::optional<TimedBatch>> LocalLog::search_time(TimePlan& wanted) const {
  auto& files = disk_->files;
  if (!wanted.file) {
    MQ_TRY(wanted.file, files.open(path_of(segment_file_name(wanted.base)), base::OpenMode::read));
  }
  if (wanted.needs_index) {
    const bool whole = wanted.index_bytes == wanted.bytes;
    MQ_TRY(auto times,
           find_time_index(indexed(wanted.base, wanted.index_bytes, whole, wanted.file)));
    wanted.loaded = std::make_shared<const TimeIndex>(std::move(times));
    wanted.near = wanted.loaded->floor(wanted.time_ms);
  }
  return find_batch_by_time(*wanted.file, wanted.base, wanted.bytes, wanted.near, wanted.time_ms,
                            wanted.damage);
}

}  // namespace mq::storage
