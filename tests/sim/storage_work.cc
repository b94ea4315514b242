#include <fmt/format.h>

#include "model/record_batch_builder.h"
#include "sim/storage_life.h"
#include "sim/violation.h"

// What a life does with its logs.
namespace mq::sim {

using namespace std::chrono_literals;
using storage::StorageErrc;

namespace {

/// Per partition and life: many lives tell more than long ones.
constexpr int kAppendsMax = 1500;

}  // namespace

asio::awaitable<void> StorageLife::append_loop(StoredPartition& partition) {
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

asio::awaitable<void> StorageLife::append_one(StoredPartition& partition,
                                              storage::PartitionLog& log) {
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

asio::awaitable<base::Result<storage::AppendInfo>> StorageLife::append(StoredPartition& partition,
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
asio::awaitable<base::Result<storage::AppendInfo>> StorageLife::follow(StoredPartition& partition,
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
asio::awaitable<void> StorageLife::cut_one(StoredPartition& partition, storage::PartitionLog& log) {
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
asio::awaitable<void> StorageLife::restart_one(StoredPartition& partition,
                                               storage::PartitionLog& log) {
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

void StorageLife::check_refused(StoredPartition& partition, storage::PartitionLog& log,
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

asio::awaitable<void> StorageLife::read_loop(StoredPartition& partition) {
  while (alive()) {
    co_await machine_.runtime.sleep_for(random_.duration(0ms, 100ms));
    auto* const log = alive() ? disk_->find(partition.spec.id) : nullptr;
    if (log == nullptr || log->failure()) co_return;
    co_await read_one(partition, *log);
  }
}

asio::awaitable<void> StorageLife::read_one(StoredPartition& partition,
                                            storage::PartitionLog& log) {
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

}  // namespace mq::sim
