#include "storage/scrubber.h"

#include <algorithm>

#include "base/log.h"
#include "base/run_on.h"
#include "storage/batch_scanner.h"
#include "storage/sealed_file.h"
#include "storage/storage_format.h"

namespace mq::storage {
namespace {

using model::Offset;

/// Read in one turn on the disk's threads; others come between two.
constexpr std::uint64_t kTurnBytes = std::uint64_t{1} << 20;
constexpr auto kSaveInterval = std::chrono::seconds(60);

asio::awaitable<std::vector<FinishedSegment>> finished_of(std::shared_ptr<LocalLog> log) {
  co_return log->finished_segments();
}

asio::awaitable<void> report(std::shared_ptr<LocalLog> log, model::DamagedPlace place,
                             std::string what) {
  log->report_scrub_damage(place, what);
  co_return;
}

}  // namespace

/// One segment being read, a turn at a time. On disk threads.
struct Scrubber::Turn {
  Turn(base::FileSystem& file_system, std::string file_path, FinishedSegment finished)
      : files(file_system), path(std::move(file_path)), segment(finished) {}

  /// A file that is gone has been removed by retention.
  Result<void> open() {
    auto opened = files.open(path, base::OpenMode::read);
    if (!opened && opened.error() == make_error_code(base::BaseErrc::not_found)) {
      ended = true;
      return {};
    }
    if (!opened) return opened.error();
    file = *std::move(opened);
    scanner = std::make_unique<BatchScanner>(*file, BatchScanner::Start{0, segment.base, {}, true},
                                             segment.bytes, BatchScanner::Depth::whole);
    return {};
  }

  Result<void> work() {
    if (!scanner) {
      const auto opened = open();
      if (!opened || ended) return opened;
    }
    const std::uint64_t from = at;
    while (!ended && at - from < kTurnBytes) {
      MQ_TRY_VOID(scanner->next());
      ended = scanner->at_end();
      if (!ended && scanner->state() != BatchState::good &&
          scanner->state() != BatchState::unsupported) {
        MQ_TRY_VOID(look_at_damage());
      }
      if (ended) break;
      at = scanner->position() + scanner->batch_bytes();
      // Of a batch in a format of a newer mq nobody knows how many records it has.
      const bool known = scanner->state() == BatchState::good;
      next = known ? scanner->view().end_offset() : Offset();
    }
    if (ended && !damage && at < segment.bytes) at = segment.bytes;
    read = at - from;
    return {};
  }

  /// It ends the turn, or all of it lies below the log's start, where nobody reads: then the
  /// scanner is at the next good batch.
  Result<void> look_at_damage() {
    place = {segment.base, scanner->position(), next, {}};
    const auto what = std::string(state_name(scanner->state()));
    MQ_TRY(place.end, scanner->step_over_below(segment.start));
    ended = !scanner->is_good();
    if (ended) damage = what;
    return {};
  }

  base::FileSystem& files;
  const std::string path;
  const FinishedSegment segment;
  std::unique_ptr<base::File> file;
  std::unique_ptr<BatchScanner> scanner;
  std::uint64_t at = 0;
  Offset next{segment.base};  // which batch is to begin there; -1: not known
  std::uint64_t read = 0;     // in this turn
  bool ended = false;
  std::optional<std::string> damage;
  model::DamagedPlace place;  // of the damage
};

Scrubber::Scrubber(std::shared_ptr<DiskState> disk, Logs logs)
    : disk_(std::move(disk)), logs_(std::move(logs)), wake_(disk_->home) {}

void Scrubber::stop() {
  stopping_ = true;
  wake_.notify_all();
}

ScrubStatus Scrubber::status() const {
  return {!mark_.done && mark_.began_ms >= 0, mark_.bytes, mark_.damaged_segments};
}

asio::awaitable<void> Scrubber::run() {
  if (disk_->config.scrub_bytes_per_second == 0) co_return;
  co_await load();
  const std::int64_t interval_ms = disk_->config.scrub_interval.count();
  while (!ended()) {
    const std::int64_t now_ms = disk_->home.wall_clock_ms();
    // A clock that was set back does not keep the next pass away for long.
    const std::int64_t age_ms = std::abs(now_ms - mark_.began_ms);
    if (mark_.done && age_ms < interval_ms) {
      co_await pause_until(disk_->home.now() + std::chrono::milliseconds(interval_ms - age_ms));
      continue;
    }
    if (mark_.done) mark_ = ScrubMark{.began_ms = now_ms};
    co_await pass();
  }
  co_await save();
}

/// A mark that is missing or damaged costs a pass that begins anew.
asio::awaitable<void> Scrubber::load() {
  Result<ScrubMark> found = make_error_code(StorageErrc::not_found);
  const auto work = [&] {
    found = load_disk_file(disk_->files, disk_->path, kScrubFile, kScrubMagic, decode_scrub_mark);
  };
  co_await disk_->executor.run(work);
  mark_ = found ? *found : ScrubMark{.began_ms = disk_->home.wall_clock_ms()};
  saved_ = due_ = disk_->home.now();
}

asio::awaitable<void> Scrubber::save() {
  saved_ = disk_->home.now();
  if (disk_->failed()) co_return;
  const auto body = encode_scrub_mark(mark_);
  const auto work = [&] {
    static_cast<void>(write_cache_file(disk_->files, disk_->path + "/" + std::string(kScrubFile),
                                       kScrubMagic, body));
  };
  co_await disk_->executor.run(work);
}

asio::awaitable<void> Scrubber::pass() {
  while (!ended()) {
    auto target = co_await next_target();
    if (ended()) co_return;
    if (!target) break;
    const model::PartitionId id = target->log->id();
    const Offset base = target->segment.base;
    Target now = *std::move(target);
    co_await scrub(std::move(now));
    if (ended()) co_return;
    // Together: an offset belongs to its partition.
    mark_.id = id;
    mark_.segment = base;
    if (disk_->home.now() - saved_ >= kSaveInterval) co_await save();
  }
  mark_.done = true;
  if (mark_.bytes > 0) {
    base::log_info("storage", "disk {}: scrubbed {} bytes, {} damaged segment(s)", disk_->path,
                   mark_.bytes, mark_.damaged_segments);
  }
  co_await save();
}

/// The first segment behind the mark.
asio::awaitable<std::optional<Scrubber::Target>> Scrubber::next_target() {
  for (const auto& log : logs_()) {
    if (ended()) co_return std::nullopt;
    if (log->id() < mark_.id || log->offline()) continue;
    auto asking = finished_of(log);
    const auto segments = co_await run_on(log->worker(), std::move(asking));
    for (const FinishedSegment& segment : segments) {
      if (log->id() == mark_.id && segment.base <= mark_.segment) continue;
      co_return Target{log, segment};
    }
  }
  co_return std::nullopt;
}

asio::awaitable<void> Scrubber::scrub(Target target) {
  const std::string path = target.log->directory() + "/" + segment_file_name(target.segment.base);
  Turn turn(disk_->files, path, target.segment);
  const std::uint64_t rate = disk_->config.scrub_bytes_per_second;
  while (!turn.ended) {
    co_await pause_until(due_);
    if (ended()) co_return;
    Result<void> done;
    const auto work = [&] { done = turn.work(); };
    co_await disk_->cold_reads->background().run(work);
    if (!done) {
      turn.damage = done.error().message();
      turn.place = {target.segment.base, turn.at, turn.next, {}};
      turn.ended = true;
    }
    mark_.bytes += turn.read;
    disk_->counters.get("storage_scrubbed_bytes_total").add(static_cast<std::int64_t>(turn.read));
    const auto cost = std::chrono::microseconds(turn.read * 1'000'000 / rate);
    due_ = std::max(due_, disk_->home.now()) + cost;
  }
  if (!turn.damage) co_return;
  ++mark_.damaged_segments;
  disk_->counters.get("storage_scrub_damage_total").add();
  auto telling = report(target.log, turn.place, *turn.damage);
  co_await run_on(target.log->worker(), std::move(telling));
}

asio::awaitable<void> Scrubber::pause_until(base::TimePoint due) {
  while (!ended() && disk_->home.now() < due) co_await wake_.wait_until(due);
}

}  // namespace mq::storage
