#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/counters.h"
#include "base/log.h"
#include "model/record_batch.h"
#include "model/record_batch_builder.h"
#include "storage/disk.h"
#include "support/crashable_file_system.h"
#include "support/run.h"
#include "support/sim_disk_executor.h"
#include "support/sim_file_system.h"
#include "support/sim_runtime.h"

namespace mq::testing {

using storage::StorageErrc;

/// A produced batch (offset, epoch and time -1) of `records` records whose values hold
/// `value_bytes` bytes that depend on `seed`.
inline base::SharedBytes make_batch(std::uint64_t seed, int records, std::size_t value_bytes) {
  model::RecordBatchBuilder builder(base::BufferPool::shared(), 16u << 20, 4096);
  std::vector<std::byte> value(value_bytes);
  SimRandom random(seed);
  for (auto& b : value) b = static_cast<std::byte>(random.next());
  for (int i = 0; i < records; ++i) {
    model::RecordInput input;
    input.value = base::Bytes(value);
    input.timestamp_ms = 1'000 + i;
    EXPECT_TRUE(builder.append(input));
  }
  return builder.finish();
}

/// One process with one data directory in a simulated machine, and the machine's crashes.
class StorageWorld {
 public:
  static constexpr const char* kPath = "data";

  explicit StorageWorld(std::uint64_t seed = 1)
      : simulator(seed), runtime(simulator), files(std::make_unique<SimFileSystem>()) {
    topic = base::Uuid::from_random(7, 7);
    config.cluster = base::Uuid::from_random(1, 2);
    config.broker = model::BrokerId(1);
    config.boot_id = "boot-1";
    config.journal_file_bytes_min = config.journal_file_bytes_max = 256u << 10;
    settings.durability = model::Durability::disk;
    settings.segment_bytes = 64u << 10;
    base::set_log_sink([this](base::LogLevel level, std::string_view, std::string_view text) {
      lines.push_back((level >= base::LogLevel::error     ? "E "
                       : level == base::LogLevel::warning ? "W "
                                                          : "I ") +
                      std::string(text));
    });
  }
  ~StorageWorld() {
    if (disk) kill();
    base::set_log_sink({});
  }

  [[nodiscard]] model::PartitionId id(int partition = 0) const { return {topic, partition}; }
  [[nodiscard]] storage::LogSpec spec(int partition = 0) {
    const auto own = settings_of.find(partition);
    return {id(partition), "orders", own == settings_of.end() ? settings : own->second, &runtime};
  }
  [[nodiscard]] std::string directory(int partition = 0) const {
    return std::string(kPath) + "/" + id(partition).text();
  }
  [[nodiscard]] std::string segment(std::int64_t base, int partition = 0) const {
    return fmt::format("{}/{:020}.log", directory(partition), base);
  }

  /// Opens and recovers; `partitions` logs are known.
  base::Result<storage::RecoverySummary> try_start(int partitions = 1) {
    process = std::make_unique<CrashableFileSystem>(*files, simulator.random().fork());
    if (dies_at_change > 0) process->kill_after(std::exchange(dies_at_change, 0), [] {});
    executor = std::make_unique<SimDiskExecutor>(simulator, times);
    config.incarnation = base::Uuid::from_random(++incarnations, 5);
    auto directory = storage::open_data_directory(*process, kPath, config.broker, refusal);
    if (!directory) return directory.error();
    auto opened = storage::Disk::open(*std::move(directory), config, *process, *executor, runtime,
                                      counters, refusal);
    if (!opened) return opened.error();
    disk = *std::move(opened);
    disk->on_ready(ready);
    disk->set_broker_epoch(static_cast<std::int64_t>(incarnations));
    std::vector<storage::LogSpec> known;
    for (int i = 0; i < partitions; ++i) known.push_back(spec(i));
    auto recovering = disk->recover(std::move(known), deleting, {});
    auto summary = run(simulator, std::move(recovering));
    if (!summary) return summary;
    disk->start();
    for (int i = 0; i < partitions; ++i) {
      if (log(i).failure() || followers.contains(i)) continue;
      found_epochs[i] = log(i).leader_epoch();
      EXPECT_TRUE(log(i).start_epoch(model::LeaderEpoch(static_cast<int>(++epoch))));
    }
    return summary;
  }
  storage::RecoverySummary start(int partitions = 1) {
    auto summary = try_start(partitions);
    EXPECT_TRUE(summary) << summary.error().message() << " " << refusal.text;
    return summary ? *summary : storage::RecoverySummary();
  }
  base::Result<void> stop() {
    auto stopping = disk->stop();
    auto result = run(simulator, std::move(stopping));
    end();
    return result;
  }
  /// kill -9.
  void kill() {
    die();
    files->kill();
  }
  /// Power cut: another boot.
  void crash() {
    die();
    files->crash(simulator.random());
    config.boot_id += "'";
  }

  [[nodiscard]] storage::PartitionLog& log(int partition = 0) { return *disk->find(id(partition)); }
  base::Result<storage::AppendInfo> try_append(int records = 1, std::size_t value_bytes = 100,
                                               int partition = 0) {
    auto batch = make_batch(++batches, records, value_bytes);
    return append_batch(batch, partition);
  }
  base::Result<storage::AppendInfo> append_batch(base::SharedBytes& batch, int partition = 0) {
    base::MutableBytes bytes(const_cast<std::byte*>(batch.bytes.data()), batch.bytes.size());
    return log(partition).append(batch.owner, bytes);
  }
  storage::AppendInfo append(int records = 1, std::size_t value_bytes = 100, int partition = 0) {
    auto info = try_append(records, value_bytes, partition);
    EXPECT_TRUE(info) << info.error().message();
    return info ? *info : storage::AppendInfo();
  }
  /// Lets simulated time pass.
  void pass(base::Duration span) { simulator.run_for(span); }
  /// Until all that was appended is durable.
  bool settle(int partition = 0) {
    return simulator.run_until(
        [&] {
          return log(partition).failure() ||
                 log(partition).durable_offset() == log(partition).log_end_offset();
        },
        std::chrono::minutes(1));
  }

  base::Result<storage::ReadResult> read(model::Offset from, std::size_t bytes_max = 1u << 20,
                                         int partition = 0) {
    auto& from_log = log(partition);
    const auto limit = from_log.log_end_offset();
    auto result = from_log.read(from, limit, bytes_max);
    if (result || result.error() != make_error_code(StorageErrc::not_cached)) return result;
    auto reading = from_log.read_from_disk(from, limit, bytes_max);
    return run(simulator, std::move(reading));
  }
  /// Every byte of the log from its start, as readers get them; checks that offsets follow.
  std::vector<std::byte> read_all(int partition = 0, std::size_t bytes_max = 1u << 20) {
    std::vector<std::byte> all;
    auto at = log(partition).log_start_offset();
    while (at < log(partition).log_end_offset()) {
      const auto result = read(at, bytes_max, partition);
      EXPECT_TRUE(result) << result.error().message() << " at " << at.value();
      if (!result) break;
      auto expected = at;
      for (const auto& piece : result->batches) {
        for (base::Bytes rest = piece.bytes; !rest.empty();) {
          const auto batch = model::RecordBatchView::parse_first(rest);
          EXPECT_TRUE(batch) << batch.error().message();
          if (!batch) return all;
          EXPECT_EQ(batch->base_offset(), expected);
          expected = batch->end_offset();
          rest = rest.subspan(batch->batch_bytes());
        }
        all.insert(all.end(), piece.bytes.begin(), piece.bytes.end());
      }
      EXPECT_EQ(result->end_offset, expected);
      EXPECT_GT(result->end_offset, at);
      if (result->end_offset <= at) break;
      at = result->end_offset;
    }
    return all;
  }
  base::Result<storage::TimeLookup> find_time(std::int64_t time_ms, int partition = 0) {
    auto finding = log(partition).find_time(time_ms);
    return run(simulator, std::move(finding));
  }
  base::Result<void> trim(model::Offset to, int partition = 0) {
    auto trimming = log(partition).trim(to);
    return run(simulator, std::move(trimming));
  }
  /// Log lines that contain `text`, of warnings and errors.
  [[nodiscard]] int complaints(const std::string& text) const {
    int n = 0;
    for (const auto& line : lines) n += line[0] != 'I' && line.find(text) != std::string::npos;
    return n;
  }

  Simulator simulator;
  SimRuntime runtime;
  std::unique_ptr<SimFileSystem> files;
  std::unique_ptr<CrashableFileSystem> process;
  std::unique_ptr<SimDiskExecutor> executor;
  base::Counters counters;
  storage::DiskConfig config;
  SimDiskTimes times;
  model::TopicSettings settings;
  std::map<int, model::TopicSettings> settings_of;  // of partitions that differ
  std::set<int> followers;  // partitions in which no epoch is begun at a start
  base::Uuid topic;
  std::vector<base::Uuid> deleting;
  std::uint64_t dies_at_change = 0;  // of the disk, in the next start; 0: it does not
  std::function<void(const model::PartitionId&)> ready;  // told of each recovered partition
  storage::Refusal refusal;
  std::unique_ptr<storage::Disk> disk;
  std::vector<std::string> lines;
  std::map<int, model::LeaderEpoch> found_epochs;  // of the logs at the last start
  std::uint64_t incarnations = 0;
  std::uint64_t epoch = 0;
  std::uint64_t batches = 0;

 private:
  /// The process's objects are unwound, which nobody hears.
  void die() {
    const auto heard = lines;
    process->kill();
    static_cast<void>(stop());
    lines = heard;
  }
  void end() {
    disk = nullptr;
    executor = nullptr;
    simulator.run_for(std::chrono::seconds(1));
    process = nullptr;
  }
};

}  // namespace mq::testing
