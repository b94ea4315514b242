#include <gtest/gtest.h>

#include <atomic>

#include "base/counters.h"
#include "base/log.h"
#include "base/real/posix_file_system.h"
#include "base/real/runtime_thread.h"
#include "base/real/thread_disk_executor.h"
#include "model/record_batch.h"
#include "model/record_batch_builder.h"
#include "storage/disk.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace mq::testing {
namespace {

using model::Offset;

/// A disk with real threads and files: home on the test's thread, two workers, two disk threads.
class RealDisk : public ::testing::Test {
 protected:
  RealDisk() {
    base::set_log_sink([](base::LogLevel, std::string_view, std::string_view) {});
  }
  ~RealDisk() override { base::set_log_sink({}); }

  void start() {
    storage::Refusal refusal;
    auto directory =
        storage::open_data_directory(files, folder / "data", model::BrokerId(1), refusal);
    ASSERT_TRUE(directory) << refusal.text;
    storage::DiskConfig config;
    config.cluster = base::Uuid::from_random(1, 1);
    config.broker = model::BrokerId(1);
    config.incarnation = base::Uuid::from_random(++incarnation, 2);
    config.retention_interval = std::chrono::milliseconds(20);
    config.checkpoint_interval = std::chrono::milliseconds(10);
    config.tail_cache_bytes = 100'000;
    auto opened = storage::Disk::open(*std::move(directory), config, files, executor, home,
                                      counters, refusal);
    ASSERT_TRUE(opened) << refusal.text;
    disk = *std::move(opened);
    std::vector<storage::LogSpec> known;
    for (int i = 0; i < kPartitions; ++i) known.push_back(spec(i));
    auto recovering = disk->recover(std::move(known), {}, {});
    const auto recovered = run(home, std::move(recovering));
    ASSERT_TRUE(recovered);
    EXPECT_TRUE(recovered->offline.empty());
    disk->start();
  }
  void stop() {
    auto stopping = disk->stop();
    EXPECT_TRUE(run(home, std::move(stopping)));
    disk = nullptr;
  }
  storage::LogSpec spec(int partition) {
    model::TopicSettings settings;
    settings.segment_bytes = 64u << 10;
    settings.durability = partition % 2 ? model::Durability::memory : model::Durability::disk;
    if (partition == 0) settings.retention_bytes = 1u << 20;
    return {{base::Uuid::from_random(3, 3), partition}, "t", settings, &workers[partition % 2]};
  }
  /// On a worker: appends and reads back for a while.
  asio::awaitable<void> use(int partition, std::atomic<int>& running) {
    auto& log = *logs[partition];
    auto& runtime = workers[partition % 2];
    EXPECT_TRUE(log.start_epoch(model::LeaderEpoch(static_cast<int>(incarnation))));
    model::RecordBatchBuilder builder(base::BufferPool::shared(), 1u << 20, 4096);
    const std::string value(700, static_cast<char>('a' + partition));
    for (int i = 0; i < 600; ++i) {
      for (int k = 0; k <= i % 5; ++k) {
        model::RecordInput record;
        record.value = base::as_bytes(value);
        EXPECT_TRUE(builder.append(record));
      }
      auto batch = builder.finish();
      const base::MutableBytes bytes(const_cast<std::byte*>(batch.bytes.data()),
                                     batch.bytes.size());
      const auto info = log.append(batch.owner, bytes);
      EXPECT_TRUE(info);
      if (!info) break;
      const auto from = std::max(log.log_start_offset(), Offset(info->base_offset.value() - i));
      auto result = log.read(from, log.log_end_offset(), 10'000);
      if (!result) {
        auto reading = log.read_from_disk(from, log.log_end_offset(), 10'000);
        result = co_await std::move(reading);
      }
      const bool gone = !result && from < log.log_start_offset();
      EXPECT_TRUE(result || gone);
      if (result) {
        EXPECT_TRUE(model::RecordBatchView::parse_first(result->batches.at(0).bytes));
      }
      if (i % 50 == 0) co_await runtime.sleep_for(std::chrono::milliseconds(5));
    }
    --running;
  }

  static constexpr int kPartitions = 4;
  TempDir folder;
  base::PosixFileSystem files;
  base::RealRuntime home;
  std::array<base::RealRuntime, 2> workers;
  base::ThreadDiskExecutor executor{2};
  base::RuntimeThread first{workers[0]};
  base::RuntimeThread second{workers[1]};
  base::Counters counters;
  std::unique_ptr<storage::Disk> disk;
  std::array<storage::PartitionLog*, kPartitions> logs{};
  int incarnation = 0;
};

TEST_F(RealDisk, WorkersFlusherRetentionAndCheckpointRunSideBySide) {
  for (int round = 0; round < 2; ++round) {
    ASSERT_NO_FATAL_FAILURE(start());
    std::atomic<int> running{kPartitions};
    for (int i = 0; i < kPartitions; ++i) logs[i] = disk->find(spec(i).id);
    for (int i = 0; i < kPartitions; ++i) workers[i % 2].spawn("use", use(i, running));
    const auto wait = [](base::Runtime& runtime, std::atomic<int>& left) -> asio::awaitable<void> {
      while (left > 0) co_await runtime.sleep_for(std::chrono::milliseconds(2));
    };
    run(home, wait(home, running), std::chrono::seconds(60));
    stop();
  }
  ASSERT_NO_FATAL_FAILURE(start());
  for (int i = 0; i < kPartitions; ++i)
    EXPECT_EQ(disk->find(spec(i).id)->log_end_offset(), Offset(2 * 600 * 3));
  stop();
}

}  // namespace
}  // namespace mq::testing
