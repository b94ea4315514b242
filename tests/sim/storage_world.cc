#include "sim/storage_world.h"

#include <fmt/format.h>

#include <memory>
#include <vector>

#include "base/counters.h"
#include "model/record_batch_builder.h"
#include "sim/storage_machine.h"
#include "sim/violation.h"
#include "storage/disk.h"
#include "support/crashable_file_system.h"
#include "support/run.h"
#include "support/sim_disk_executor.h"

namespace mq::sim {
namespace {

using namespace std::chrono_literals;
using base::Bytes;
using storage::StorageErrc;
using testing::SimRandom;

/// How long after the return of space appends may still be refused.
constexpr auto kSpaceNoticed = 10s;

/// With less free than this a refusal is no wonder; the low mark lies well below.
constexpr std::uint64_t kShortBytes = std::uint64_t{8} << 20;

/// Per partition and life: many lives tell more than long ones.
constexpr int kAppendsMax = 1500;

std::string_view text(End end) {
  return end == End::clean_stop ? "clean stop" : end == End::kill ? "kill" : "power cut";
}

/// One process: everything that a crash takes with it.
class Life {
 public:
  explicit Life(StorageMachine& machine)
      : machine_(machine),
        random_(machine.random.fork()),
        files_(machine.files, machine.random.fork()),
        executor_(machine.simulator, {}) {}

  void run();
  /// True when everything has ended, so that this may be destroyed.
  [[nodiscard]] bool unwound() const noexcept { return unwound_; }
  /// Called after every step of the world.
  void observe();

 private:
  storage::DiskConfig config();
  asio::awaitable<void> live();
  asio::awaitable<bool> open_and_recover();
  void check_damage_was_found(const storage::RecoverySummary& summary);
  asio::awaitable<bool> get_over_damage();
  asio::awaitable<void> check_recovered(StoredPartition& partition);
  asio::awaitable<void> append_loop(StoredPartition& partition);
  asio::awaitable<void> append_one(StoredPartition& partition, storage::PartitionLog& log);
  asio::awaitable<base::Result<storage::AppendInfo>> append(StoredPartition& partition,
                                                            storage::PartitionLog& log,
                                                            base::SharedBytes batch);
  asio::awaitable<base::Result<storage::AppendInfo>> follow(StoredPartition& partition,
                                                            storage::PartitionLog& log,
                                                            base::SharedBytes batch);
  void check_epochs(StoredPartition& partition, storage::PartitionLog& log);
  asio::awaitable<void> cut_one(StoredPartition& partition, storage::PartitionLog& log);
  asio::awaitable<void> restart_one(StoredPartition& partition, storage::PartitionLog& log);
  void changed_ends(StoredPartition& partition);
  void check_refused(StoredPartition& partition, storage::PartitionLog& log,
                     const base::Error& error);
  asio::awaitable<void> read_loop(StoredPartition& partition);
  asio::awaitable<void> read_one(StoredPartition& partition, storage::PartitionLog& log);
  asio::awaitable<void> trouble_loop();
  asio::awaitable<void> stop();
  asio::awaitable<void> guarded(asio::awaitable<void> task);
  void spawn(std::string what, asio::awaitable<void> task) {
    tasks_.spawn(std::move(what), guarded(std::move(task)));
  }
  [[nodiscard]] bool alive() const noexcept {
    return !files_.dead() && !ending_ && machine_.violation.empty();
  }
  [[nodiscard]] bool fault_struck() const {
    return fault_planned_ && machine_.files.faults_struck() > strikes_before_;
  }
  void note_durable(StoredPartition& partition, std::int64_t offset);
  void end_it(End how);
  bool run_until(const std::function<bool()>& done, base::Duration limit, std::string_view what);

  StorageMachine& machine_;
  SimRandom random_;
  testing::CrashableFileSystem files_;
  testing::SimDiskExecutor executor_;
  base::Counters counters_;
  base::TaskGroup tasks_{machine_.runtime};
  std::unique_ptr<storage::Disk> disk_;
  bool serving_ = false;
  bool ending_ = false;
  bool unwound_ = false;
  bool stopped_ = false;
  bool fault_planned_ = false;
  bool space_was_short_ = false;
  std::uint64_t strikes_before_ = machine_.files.faults_struck();
  base::TimePoint space_short_until_{};
};

/// A violation inside a coroutine must not vanish in a log line.
asio::awaitable<void> Life::guarded(asio::awaitable<void> task) {
  try {
    co_await std::move(task);
  } catch (const std::exception& error) {
    machine_.fail(error.what());
  }
}

storage::DiskConfig Life::config() {
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

asio::awaitable<bool> Life::open_and_recover() {
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

void Life::check_damage_was_found(const storage::RecoverySummary& summary) {
  const Damage& damage = *machine_.damage;
  require(machine_.files.content(damage.file).size() < damage.whole.size() &&
              summary.offline == std::vector{damage.partition},
          "REC-1: {} lost its end long after it was finished, and the start did not say so",
          damage.file);
}

/// False: the life ends here. As a follower the log is given up and begins anew somewhere above all
/// that it held.
asio::awaitable<bool> Life::get_over_damage() {
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
    auto replacing = disk_->replace_damaged(partition->spec, start);
    const auto replaced = co_await std::move(replacing);
    if (files_.dead()) co_return false;
    require(replaced.has_value(), "REC-10: {}: the damaged log cannot be replaced: {}",
            partition->model.name(), replaced ? "" : replaced.error().message());
  }
  co_return true;
}

asio::awaitable<void> Life::check_recovered(StoredPartition& partition) {
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

asio::awaitable<void> Life::live() {
  if (!co_await open_and_recover()) co_return;
  disk_->start();
  serving_ = true;
  for (const auto& partition : machine_.partitions) {
    spawn("appender", append_loop(*partition));
    spawn("reader", read_loop(*partition));
  }
  spawn("trouble", trouble_loop());
}

void Life::changed_ends(StoredPartition& partition) {
  partition.confirmed_seen = 0;
  partition.cutting = false;
  partition.durable_seen.clear();
}

/// PAR-4: which epoch appended what, wherever the log has it from.
void Life::check_epochs(StoredPartition& partition, storage::PartitionLog& log) {
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

void Life::note_durable(StoredPartition& partition, std::int64_t offset) {
  auto& seen = partition.durable_seen;
  const auto now = machine_.simulator.now();
  if (seen.empty() || seen.back().second != offset) seen.emplace_back(now, offset);
  while (seen.size() > 1 && seen[1].first + kCheckpointed <= now) seen.pop_front();
}

void Life::observe() {
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

asio::awaitable<void> Life::append_loop(StoredPartition& partition) {
  const auto pause_max = base::Duration(1ms * random_.between(1, 100));
  const bool cuts = random_.chance(0.3);
  for (int left = kAppendsMax; left > 0 && alive(); --left) {
    if (!random_.chance(0.5)) co_await machine_.runtime.sleep_for(random_.duration(0ms, pause_max));
    if (!alive()) co_return;
    auto* const log = disk_->find(partition.spec.id);
    if (log == nullptr) co_return;
    co_await append_one(partition, *log);
    if (!alive() || log->failure()) co_return;
    if (cuts && random_.chance(0.01)) co_await cut_one(partition, *log);
    if (cuts && partition.follows && alive() && !log->failure() && random_.chance(0.004))
      co_await restart_one(partition, *log);
  }
}

asio::awaitable<void> Life::append_one(StoredPartition& partition, storage::PartitionLog& log) {
  model::RecordBatchBuilder builder(base::BufferPool::shared(), 1 << 20, 4096);
  const auto records = random_.between(1, random_.chance(0.2) ? 40 : 4);
  for (std::uint64_t i = 0; i < records; ++i) {
    std::string value(random_.between(0, random_.chance(0.1) ? 5000 : 300), '\0');
    for (char& c : value) c = static_cast<char>(random_.next());
    model::RecordInput record;
    record.value = base::as_bytes(value);
    record.timestamp_ms = machine_.runtime.wall_clock_ms();
    if (!builder.append(record)) break;
  }
  const auto batch = builder.finish();
  const base::MutableBytes bytes(const_cast<std::byte*>(batch.bytes.data()), batch.bytes.size());
  machine_.dirty = true;
  base::Result<storage::AppendInfo> appended = StorageErrc::closed;
  if (partition.follows) {
    appended = co_await follow(partition, log, batch);
  } else {
    appended = co_await append(partition, log, batch);
  }
  if (!appended && !alive()) co_return;
  if (!appended) co_return check_refused(partition, log, appended.error());
  require(!files_.dead(), "{}: an append succeeded on a dead disk", partition.model.name());
  partition.model.appended(appended->base_offset.value(), appended->end_offset.value(), bytes);
  ++machine_.appended;
}

asio::awaitable<base::Result<storage::AppendInfo>> Life::append(StoredPartition& partition,
                                                                storage::PartitionLog& log,
                                                                base::SharedBytes batch) {
  const base::MutableBytes bytes(const_cast<std::byte*>(batch.bytes.data()), batch.bytes.size());
  base::Result<storage::AppendInfo> appended = StorageErrc::closed;
  if (log.appends_inline()) {
    appended = log.append(batch.owner, bytes);
  } else {
    const auto parsed = model::parse_produced(bytes, partition.spec.settings.batch_bytes);
    appended = co_await log.append_later(batch.owner, bytes, *parsed);
    // Nobody was told any more.
    if (!alive()) partition.model.maybe_appended(bytes);
    if (!alive()) co_return StorageErrc::closed;
  }
  if (appended)
    require(appended->leader_epoch.value() == partition.epoch, "PAR-4: {}: appended in epoch {}",
            partition.model.name(), appended->leader_epoch);
  else if (files_.dead())
    partition.model.maybe_appended(bytes);
  co_return appended;
}

/// As the leader stamped it: now and then of an older epoch, which the log has not got whole yet.
asio::awaitable<base::Result<storage::AppendInfo>> Life::follow(StoredPartition& partition,
                                                                storage::PartitionLog& log,
                                                                base::SharedBytes batch) {
  const base::MutableBytes bytes(const_cast<std::byte*>(batch.bytes.data()), batch.bytes.size());
  const auto oldest = static_cast<std::uint64_t>(std::max(1, log.last_batch_epoch().value()));
  auto epoch = partition.epoch;
  if (random_.chance(0.1))
    epoch = static_cast<std::int32_t>(
        random_.between(oldest, static_cast<std::uint64_t>(partition.epoch)));
  const auto time_ms =
      std::max(partition.model.last_append_time_ms(), machine_.runtime.wall_clock_ms());
  model::stamp(bytes, log.log_end_offset(), model::LeaderEpoch(epoch), time_ms);
  base::Result<storage::AppendInfo> appended = StorageErrc::closed;
  if (log.appends_inline()) {
    appended = log.append_replicated(batch.owner, bytes);
  } else {
    appended = co_await log.append_replicated_later(batch.owner, bytes);
    if (!alive()) partition.model.maybe_appended(bytes);
    if (!alive()) co_return StorageErrc::closed;
  }
  if (!appended && files_.dead()) partition.model.maybe_appended(bytes);
  co_return appended;
}

/// LOG-12: as a replica does whose leader has another log; other batches follow.
asio::awaitable<void> Life::cut_one(StoredPartition& partition, storage::PartitionLog& log) {
  const model::Offset to(partition.model.boundary(random_.between(1, 30)));
  if (to == log.log_end_offset()) co_return;
  machine_.simulator.trace(fmt::format("{} is cut at {}", partition.model.name(), to));
  partition.model.cutting(to.value());
  partition.cutting = true;
  ++partition.cuts;
  if (partition.follows) ++partition.epoch;
  const auto cut = co_await log.truncate(to, model::LeaderEpoch(partition.epoch));
  ++partition.cuts;
  if (!alive() || (!cut && fault_struck())) co_return;  // the next start tells
  const bool passed = !cut && cut.error() == StorageErrc::offset_out_of_range &&
                      to < log.log_start_offset();  // retention was faster
  const bool full = !cut && cut.error() == StorageErrc::storage_full;
  require(cut.has_value() || passed || full, "LOG-12: {}: not cut at {}: {}",
          partition.model.name(), to, cut ? "" : cut.error().message());
  if (cut) {
    partition.model.cut();
    require(log.log_end_offset() == to && log.durable_offset() == to,
            "LOG-12: {}: cut at {}, ends at {}, durable up to {}", partition.model.name(), to,
            log.log_end_offset(), log.durable_offset());
  }
  partition.model.not_cut();
  changed_ends(partition);
  check_epochs(partition, log);
}

/// As a replica does whose leader has trimmed what would come next.
asio::awaitable<void> Life::restart_one(StoredPartition& partition, storage::PartitionLog& log) {
  const model::Offset to =
      model::advance(log.log_end_offset(), static_cast<std::int64_t>(random_.between(0, 1000)));
  machine_.simulator.trace(fmt::format("{} is begun anew at {}", partition.model.name(), to));
  partition.model.restarting(to.value());
  partition.cutting = true;
  ++partition.cuts;
  const auto done = co_await log.restart_at(to, model::LeaderEpoch(++partition.epoch));
  ++partition.cuts;
  if (!alive() || (!done && fault_struck())) co_return;  // the next start tells
  require(done.has_value() || done.error() == StorageErrc::storage_full,
          "LOG-13: {}: not begun anew at {}: {}", partition.model.name(), to,
          done ? "" : done.error().message());
  if (done) {
    partition.model.restart();
    require(log.log_start_offset() == to && log.log_end_offset() == to &&
                log.durable_offset() == to && log.confirmed_end() == to,
            "LOG-13: {}: begun anew at {}, but [{}, {}), durable up to {}", partition.model.name(),
            to, log.log_start_offset(), log.log_end_offset(), log.durable_offset());
  }
  partition.model.not_restarted();
  changed_ends(partition);
}

void Life::check_refused(StoredPartition& partition, storage::PartitionLog& log,
                         const base::Error& error) {
  if (files_.dead()) return;  // the next start tells
  if (fault_struck()) {
    machine_.pages_lost = true;
    return;
  }
  require(error == StorageErrc::storage_full, "{}: append was refused: {}", partition.model.name(),
          error.message());
  // The appends themselves may have filled the disk.
  const auto free = machine_.files.free_bytes(kStoragePath);
  const bool short_now = !free || *free < kShortBytes;
  require(short_now || machine_.simulator.now() < space_short_until_,
          "REC-6: {}: STORAGE_FULL with {} bytes free, long after space came back",
          partition.model.name(), free ? *free : 0);
  require(!log.failure() && log.log_end_offset().value() == partition.model.end(),
          "LOG-6: {}: a refused append moved the log end to {}", partition.model.name(),
          log.log_end_offset());
}

asio::awaitable<void> Life::read_loop(StoredPartition& partition) {
  while (alive()) {
    co_await machine_.runtime.sleep_for(random_.duration(0ms, 100ms));
    auto* const log = alive() ? disk_->find(partition.spec.id) : nullptr;
    if (log == nullptr || log->failure()) co_return;
    co_await read_one(partition, *log);
  }
}

asio::awaitable<void> Life::read_one(StoredPartition& partition, storage::PartitionLog& log) {
  if (partition.cutting) co_return;
  const auto start = log.log_start_offset();
  const auto limit = random_.chance(0.5) ? log.confirmed_end() : log.log_end_offset();
  if (limit <= start) co_return;
  const auto span = static_cast<std::uint64_t>(limit.value() - start.value());
  const model::Offset from = model::advance(
      start, static_cast<std::int64_t>(random_.chance(0.3) ? span - 1 : random_.below(span)));
  const std::size_t bytes_max = random_.between(1, 64 << 10);
  const int cuts = partition.cuts;
  auto read = log.read(from, limit, bytes_max);
  if (!read && read.error() == StorageErrc::not_cached)
    read = co_await log.read_from_disk(from, limit, bytes_max);
  if (!alive() || log.failure() || partition.cuts != cuts) co_return;
  if (!read && from < log.log_start_offset()) co_return;  // retention was faster
  require(read.has_value(), "{}: read of {} in [{}, {}) failed: {}", partition.model.name(), from,
          start, limit, read ? "" : read.error().message());
  require(read->bytes > 0, "{}: read of {} below {} got nothing", partition.model.name(), from,
          limit);
  if (random_.chance(0.2)) {
    // What was handed out stays as it is, whatever happens to the log meanwhile.
    co_await machine_.runtime.sleep_for(random_.duration(0ms, 500ms));
    // The model has forgotten it too.
    if (from < log.log_start_offset() || partition.cuts != cuts) co_return;
  }
  std::string bytes;
  for (const auto& piece : read->batches) bytes += base::as_text(piece.bytes);
  partition.model.check_read(from.value(), base::as_bytes(bytes));
}

asio::awaitable<void> Life::trouble_loop() {
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

asio::awaitable<void> Life::stop() {
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

void Life::end_it(End how) {
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

bool Life::run_until(const std::function<bool()>& done, base::Duration limit,
                     std::string_view what) {
  if (machine_.simulator.run_until(done, limit)) return true;
  if (!what.empty())
    machine_.fail(fmt::format("{} (world {})", what,
                              machine_.simulator.stuck() ? "runs in a circle" : "stands still"));
  return false;
}

void Life::run() {
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

}  // namespace

Report run_storage_world(std::uint64_t seed) {
  Report report;
  report.world = "storage";
  report.seed = seed;
  auto machine = std::make_unique<StorageMachine>(seed);
  Life* current = nullptr;
  machine->simulator.on_step([&machine, &current] {
    if (current == nullptr || !machine->violation.empty()) return;
    try {
      current->observe();
    } catch (const Violation& violation) {
      machine->fail(violation.what());
    }
  });
  const auto lives = machine->random.between(2, 8);
  for (; report.lives < lives && machine->violation.empty(); ++report.lives) {
    auto life = std::make_unique<Life>(*machine);
    current = life.get();
    life->run();
    current = nullptr;
    if (!life->unwound()) (void)life.release();  // what still runs in it needs it
  }
  report.violation = machine->violation;
  report.trace_hash = machine->simulator.trace_hash();
  report.steps = machine->simulator.steps();
  report.records = machine->appended;
  report.trace = machine->simulator.recent_trace();
  if (!report.ok()) (void)machine.release();
  return report;
}

}  // namespace mq::sim
