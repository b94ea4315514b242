#include "sim/storage_life.h"

#include <fmt/format.h>

#include "sim/violation.h"
#include "storage/disk.h"

// How a life begins, what happens to it and how it ends.
namespace mq::sim {

using namespace std::chrono_literals;
using storage::StorageErrc;

namespace {

/// How long after the return of space appends may still be refused.
constexpr auto kSpaceNoticed = 10s;

std::string_view text(End end) {
  return end == End::clean_stop ? "clean stop" : end == End::kill ? "kill" : "power cut";
}

}  // namespace

/// A violation inside a coroutine must not vanish in a log line.
asio::awaitable<void> StorageLife::guarded(asio::awaitable<void> task) {
  try {
    co_await std::move(task);
  } catch (const std::exception& error) {
    machine_.fail(error.what());
  }
}

storage::DiskConfig StorageLife::config() {
  storage::DiskConfig config;
  config.cluster = machine_.cluster;
  config.broker = model::BrokerId(1);
  config.incarnation = base::Uuid::from_random(random_.next(), random_.next());
  config.boot_id = fmt::format("boot-{}", machine_.boots);
  config.tail_cache_bytes = random_.chance(0.5) ? 0 : 64 << 10;
  config.index_stride_bytes = 4 << 10;
  config.write_behind_bytes = 32 << 10;
  // Some disks are always behind, so that appends have to wait.
  if (random_.chance(0.4)) config.dirty_bytes_max = random_.between(4, 256) << 10;
  config.checkpoint_interval = random_.chance(0.5) ? 500ms : 5s;
  config.memory_sync_interval = 3s;
  config.retention_interval = 1s;
  config.space_interval = 200ms;
  config.low_mark_bytes = 1 << 20;
  // Many whole cycles of the journal in a life, and much that goes past it.
  config.journal_file_bytes_min = config.journal_file_bytes_max = random_.between(4, 32) << 14;
  config.journal_files_max = static_cast<std::uint32_t>(random_.between(2, 4));
  config.journal_bypass_bytes = random_.between(1, 8) << 12;
  return config;
}

asio::awaitable<bool> StorageLife::open_and_recover() {
  storage::Refusal refusal;
  auto directory = storage::open_data_directory(files_, kStoragePath, model::BrokerId(1), refusal);
  if (directory) {
    auto disk = storage::Disk::open(std::move(*directory), config(), files_, executor_,
                                    machine_.runtime, counters_, refusal);
    if (disk) disk_ = std::move(*disk);
  }
  if (!disk_) {
    require(files_.dead(), "REC-7: start was refused: {}", refusal.text);
    co_return false;
  }
  std::vector<storage::LogSpec> known;
  for (const auto& partition : machine_.partitions) known.push_back(partition->spec);
  std::vector<base::Uuid> deleting;
  std::function<void(const storage::RecoveryProgress&)> progress;
  auto summary = co_await disk_->recover(std::move(known), std::move(deleting), progress);
  if (files_.dead()) co_return false;
  require(summary.has_value(), "recovery failed: {}", summary ? "" : summary.error().message());
  require(summary->journal_problem.empty(), "REC-1: the journal is said to be damaged: {}",
          summary->journal_problem);
  require(summary->moved_to_unknown.empty(), "REC-9: a known partition went to unknown/");
  if (machine_.damage) {
    const bool replaced = machine_.damage->replacing && summary->offline.empty();
    if (!replaced) check_damage_was_found(*summary);
    bool goes_on = replaced;
    if (!replaced) goes_on = co_await get_over_damage();
    if (!goes_on) co_return false;
    summary->offline.clear();
    machine_.damage.reset();
  }
  require(summary->offline.empty(), "REC-1: {} is offline though nothing was damaged",
          summary->offline.empty() ? "" : summary->offline.front().text());
  require(!machine_.stopped_well || (summary->clean && summary->bytes_scanned == 0),
          "REC-4: the start after a clean stop scanned {} bytes", summary->bytes_scanned);
  require(!summary->clean || !machine_.dirty, "REC-4: a clean marker after appends and a {}",
          text(machine_.last_end));
  for (const auto& partition : machine_.partitions) {
    co_await check_recovered(*partition);
    if (files_.dead()) co_return false;
  }
  machine_.pages_lost = false;
  co_return true;
}

void StorageLife::check_damage_was_found(const storage::RecoverySummary& summary) {
  const Damage& damage = *machine_.damage;
  require(machine_.files.content(damage.file).size() < damage.whole.size() &&
              summary.offline == std::vector{damage.partition},
          "REC-1: {} lost its end long after it was finished, and the start did not say so",
          damage.file);
}

/// False: the life ends here. As a follower the log is given up and begins anew somewhere above all
/// that it held.
asio::awaitable<bool> StorageLife::get_over_damage() {
  Damage& damage = *machine_.damage;
  if (!damage.replacing && random_.chance(0.5)) {
    files_.kill();
    machine_.files.set_content(damage.file, damage.whole);
    machine_.damage.reset();
    co_return false;
  }
  damage.replacing = true;
  for (const auto& partition : machine_.partitions) {
    if (partition->spec.id != damage.partition) continue;
    const model::Offset start(partition->model.end() +
                              static_cast<std::int64_t>(random_.below(100)));
    partition->model.restarting(start.value());
    machine_.simulator.trace(fmt::format("{} begins anew at {}, its damaged log is put away",
                                         partition->model.name(), start));
    auto replacing = disk_->replace_damaged(partition->spec, start, storage::Keep::nothing);
    const auto replaced = co_await std::move(replacing);
    if (files_.dead()) co_return false;
    require(replaced.has_value(), "REC-10: {}: the damaged log cannot be replaced: {}",
            partition->model.name(), replaced ? "" : replaced.error().message());
  }
  co_return true;
}

asio::awaitable<void> StorageLife::check_recovered(StoredPartition& partition) {
  auto* const log = disk_->find(partition.spec.id);
  require(log != nullptr, "{}: no log after recovery", partition.model.name());
  const auto start = log->log_start_offset();
  const auto end = log->log_end_offset();
  std::string last;
  if (end > start) {
    const auto read = co_await log->read_from_disk(model::advance(end, -1), end, 1);
    if (files_.dead()) co_return;
    require(read.has_value(), "{}: the last batch cannot be read after recovery: {}",
            partition.model.name(), read ? "" : read.error().message());
    for (const auto& piece : read->batches) last += base::as_text(piece.bytes);
  }
  partition.model.recovered(start.value(), end.value(), !machine_.pages_lost, base::as_bytes(last));
  require(log->durable_offset() == end, "REC-3: {}: serves up to {} but only {} is durable",
          partition.model.name(), end, log->durable_offset());
  // PAR-4: the log has seen no epoch as high as the one that begins now.
  require(log->leader_epoch().value() <= partition.epoch, "PAR-4: {}: epoch {} came back",
          partition.model.name(), log->leader_epoch());
  check_epochs(partition, *log);
  ++partition.epoch;
  partition.follows = random_.chance(0.4);
  if (!partition.follows) {
    const auto started = log->start_epoch(model::LeaderEpoch(partition.epoch));
    require(started.has_value() || files_.dead(), "{}: epoch {} was refused: {}",
            partition.model.name(), partition.epoch, started ? "" : started.error().message());
  }
  changed_ends(partition);
}

asio::awaitable<void> StorageLife::live() {
  if (!co_await open_and_recover()) co_return;
  disk_->start();
  serving_ = true;
  for (const auto& partition : machine_.partitions) {
    spawn("appender", append_loop(*partition));
    spawn("reader", read_loop(*partition));
  }
  spawn("trouble", trouble_loop());
}

void StorageLife::changed_ends(StoredPartition& partition) {
  partition.confirmed_seen = 0;
  partition.cutting = false;
  partition.durable_seen.clear();
}

/// PAR-4: which epoch appended what, wherever the log has it from.
void StorageLife::check_epochs(StoredPartition& partition, storage::PartitionLog& log) {
  const auto start = log.log_start_offset().value();
  auto expected = partition.model.epoch_starts();
  std::erase_if(expected, [&](const auto& one) { return one.second <= start; });
  std::vector<std::pair<std::int32_t, std::int64_t>> known;
  for (const auto& one : log.epoch_starts()) {
    const auto offset = one.start_offset.value();
    if (offset > start && offset < log.log_end_offset().value())
      known.emplace_back(one.leader_epoch.value(), offset);
  }
  if (known == expected) return;
  std::string text;
  for (const auto& [epoch, offset] : known) text += fmt::format(" {}@{}", epoch, offset);
  text += " instead of";
  for (const auto& [epoch, offset] : expected) text += fmt::format(" {}@{}", epoch, offset);
  machine_.fail(fmt::format("PAR-4: {}: epochs of [{}, {}) begin{}", partition.model.name(), start,
                            log.log_end_offset(), text));
}

void StorageLife::note_durable(StoredPartition& partition, std::int64_t offset) {
  auto& seen = partition.durable_seen;
  const auto now = machine_.simulator.now();
  if (seen.empty() || seen.back().second != offset) seen.emplace_back(now, offset);
  while (seen.size() > 1 && seen[1].first + kCheckpointed <= now) seen.pop_front();
}

void StorageLife::observe() {
  if (!serving_ || files_.dead() || stopped_) return;
  for (const auto& partition : machine_.partitions) {
    auto* const log = disk_->find(partition->spec.id);
    if (log == nullptr || log->failure() || partition->cutting) continue;
    const auto confirmed = log->confirmed_end().value();
    require(confirmed >= partition->confirmed_seen, "PAR-1: {}: confirmed end fell from {} to {}",
            partition->model.name(), partition->confirmed_seen, confirmed);
    partition->confirmed_seen = confirmed;
    require(log->durable_offset() <= log->log_end_offset() &&
                log->confirmed_end() <= log->log_end_offset(),
            "PAR-1: {}: durable {}, confirmed {}, log end {}", partition->model.name(),
            log->durable_offset(), log->confirmed_end(), log->log_end_offset());
    partition->model.saw_durable(log->durable_offset().value());
    note_durable(*partition, log->durable_offset().value());
    partition->model.saw_start(log->log_start_offset().value());
  }
}

asio::awaitable<void> StorageLife::trouble_loop() {
  while (alive()) {
    co_await machine_.runtime.sleep_for(random_.duration(50ms, 3s));
    if (!alive()) co_return;
    const auto dice = random_.below(10);
    if (dice < 3) {
      machine_.simulator.trace("the disk fills up");
      space_short_until_ = base::TimePoint::max();
      space_was_short_ = true;
      machine_.files.set_capacity(machine_.files.used_bytes() + random_.below(3 << 20));
      co_await machine_.runtime.sleep_for(random_.duration(10ms, 3s));
      machine_.simulator.trace("space comes back");
      machine_.files.set_capacity(machine_.files.used_bytes() + kStorageBytes);
      space_short_until_ = machine_.simulator.now() + kSpaceNoticed;
    } else if (dice < 5) {
      const auto by = static_cast<std::int64_t>(random_.below(7'200'000)) - 3'600'000;
      machine_.simulator.trace(fmt::format("the wall clock jumps by {} ms", by));
      machine_.runtime.jump_wall_clock(by);
    } else if (dice == 5 && !fault_planned_) {
      machine_.simulator.trace("a sync will fail");
      fault_planned_ = true;
      testing::Fault fault;
      fault.operation = testing::FileOperation::sync;
      fault.skip = static_cast<int>(random_.below(5));
      machine_.files.inject(std::move(fault));
    }
  }
}

asio::awaitable<void> StorageLife::stop() {
  co_await tasks_.wait();
  if (disk_) {
    const auto stopped = co_await disk_->stop();
    stopped_ = true;
    machine_.stopped_well = stopped.has_value() && !files_.dead();
    if (!files_.dead()) machine_.dirty = false;
    require(stopped.has_value() || files_.dead() || fault_planned_, "stop failed: {}",
            stopped ? "" : stopped.error().message());
  }
  unwound_ = true;
}

void StorageLife::end_it(End how) {
  machine_.simulator.trace(fmt::format("the process ends: {}", text(how)));
  machine_.last_end = how;
  machine_.stopped_well = false;
  if (fault_struck()) machine_.pages_lost = true;
  if (how != End::clean_stop) {
    files_.kill();
    if (how == End::kill) machine_.files.kill();
    if (how == End::power_cut) {
      machine_.files.crash(random_);
      machine_.pages_lost = true;
      ++machine_.boots;
    }
  }
  const auto free = machine_.files.free_bytes(kStoragePath);
  const bool all_was_well = !fault_planned_ && !space_was_short_ && free && *free > kShortBytes;
  if (how != End::clean_stop && serving_ && all_was_well && random_.chance(0.5))
    machine_.damage_a_finished_segment();
  machine_.files.clear_faults();
  machine_.files.set_capacity(machine_.files.used_bytes() + kStorageBytes);
  ending_ = true;
}

bool StorageLife::run_until(const std::function<bool()>& done, base::Duration limit,
                            std::string_view what) {
  if (machine_.simulator.run_until(done, limit)) return true;
  if (!what.empty())
    machine_.fail(fmt::format("{} (world {})", what,
                              machine_.simulator.stuck() ? "runs in a circle" : "stands still"));
  return false;
}

void StorageLife::run() {
  const auto dice = random_.below(10);
  const End planned = dice < 2 && !machine_.damage ? End::clean_stop
                      : dice < 6                   ? End::kill
                                                   : End::power_cut;
  // Mostly it dies in the middle of whatever it does with the disk, perhaps in recovery.
  if (planned != End::clean_stop && random_.chance(0.6))
    files_.kill_after(random_.between(1, random_.chance(0.3) ? 40 : 1000), [] {});
  machine_.simulator.trace("a process starts");
  spawn("life", live());
  const auto over = [this] { return files_.dead() || !machine_.violation.empty(); };
  run_until([&] { return over() || serving_; }, 10min, "recovery does not end");
  if (!over()) run_until(over, random_.duration(20ms, random_.chance(0.2) ? 30s : 4s), "");
  end_it(machine_.violation.empty() ? planned : End::kill);
  machine_.runtime.spawn("stop", guarded(stop()));
  run_until([this] { return unwound_ || stopped_; }, 10min, "stopping does not end");
  for (const auto& [name, value] : counters_.snapshot()) {
    if (name.starts_with("invariant_violations") && value > 0)
      machine_.fail(fmt::format("the product counts {} = {}", name, value));
  }
}

}  // namespace mq::sim
