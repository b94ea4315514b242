// Durable appends a second with one append in flight per partition: the disk with its journal, and
// beside it one fdatasync per partition and append. Prints one JSON object per line; asserts
// nothing. Run it in a release build, on the disk to be measured:
//   storage_bench FOLDER [--partitions 1,50,200] [--seconds 20] [--cycles 3] [--value-bytes 256]
//                 [--journal-mib N] [--baseline-threads 4] [--no-baseline]
// Each row runs until every journal file in use has been written `cycles` times, so that giving
// files back is in it. --journal-mib: all journal files have this size; else they are what a broker
// would have. The fdatasyncs run on as many threads as the disk with the journal has, or as many as
// asked for.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/counters.h"
#include "base/log.h"
#include "base/real/posix_file_system.h"
#include "base/real/runtime_thread.h"
#include "base/real/thread_disk_executor.h"
#include "model/record_batch.h"
#include "model/record_batch_builder.h"
#include "storage/disk.h"
#include "support/run.h"

namespace {

using namespace mq;
using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

constexpr int kDiskThreads = 4;

struct Options {
  std::string folder;
  std::vector<int> partitions{1, 50, 200, 1000};
  int seconds = 20;
  int cycles = 3;
  std::size_t value_bytes = 256;
  std::uint64_t journal_mib = 0;  // 0: as a broker has them
  int baseline_threads = kDiskThreads;
  bool baseline = true;
};

/// What the block device under a folder has done since it came up; zeros if it tells nothing.
struct DeviceWork {
  long long writes = 0;
  long long sectors = 0;
  long long flushes = 0;
};
DeviceWork device_work(const std::string& folder) {
  DeviceWork work;
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) return work;
  std::ifstream in("/sys/dev/block/" + std::to_string(major(status.st_dev)) + ":" +
                   std::to_string(minor(status.st_dev)) + "/stat");
  std::vector<long long> fields;
  for (long long field = 0; in >> field;) fields.push_back(field);
  constexpr std::size_t kWrites = 4, kSectors = 6, kFlushes = 15;
  if (fields.size() <= kFlushes) return work;
  work.writes = fields[kWrites];
  work.sectors = fields[kSectors];
  work.flushes = fields[kFlushes];
  return work;
}

/// Latencies of appends and the longest time in which none was answered.
struct Measured {
  std::vector<float> ms;
  Clock::time_point last{};
  double stall_ms = 0;
  double seconds = 0;
  DeviceWork device;

  void add(Clock::time_point sent, Clock::time_point now) {
    ms.push_back(std::chrono::duration<float, std::milli>(now - sent).count());
    if (last != Clock::time_point{})
      stall_ms = std::max(stall_ms, std::chrono::duration<double, std::milli>(now - last).count());
    last = now;
  }
  [[nodiscard]] double percentile(double share) {
    if (ms.empty()) return 0;
    const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(ms.size() - 1));
    std::nth_element(ms.begin(), ms.begin() + at, ms.end());
    return ms[static_cast<std::size_t>(at)];
  }
  [[nodiscard]] double rate() const {
    return seconds > 0 ? static_cast<double>(ms.size()) / seconds : 0;
  }
};

base::SharedBytes make_batch(std::size_t value_bytes) {
  model::RecordBatchBuilder builder(base::BufferPool::shared(), 16u << 20, 4096);
  const std::string value(value_bytes, 'v');
  model::RecordInput record;
  record.value = base::as_bytes(value);
  record.timestamp_ms = 1'000;
  static_cast<void>(builder.append(record));
  return builder.finish();
}

/// One partition: appends again as soon as the append before is durable.
struct Partition {
  storage::PartitionLog* log = nullptr;
  model::Offset wanted;
  Clock::time_point sent;
  base::SharedBytes batch;
};

class JournalBench {
 public:
  JournalBench(const Options& options, int partitions) : options_(options) {
    parts_.resize(static_cast<std::size_t>(partitions));
  }

  void run() {
    const std::string folder = options_.folder + "/mq-bench";
    fs::remove_all(folder);
    open(folder);
    measure();
    auto stopping = disk_->stop();
    static_cast<void>(testing::run(home_, std::move(stopping), std::chrono::minutes(5)));
    disk_ = nullptr;
    fs::remove_all(folder);
  }

  Measured measured;
  std::int64_t groups = 0;
  std::int64_t journal_bytes = 0;
  std::int64_t switches = 0;
  std::int64_t stalls = 0;
  std::int64_t syncs = 0;
  std::int64_t files = 0;

 private:
  void open(const std::string& folder) {
    storage::Refusal refusal;
    auto directory = storage::open_data_directory(files_, folder, model::BrokerId(1), refusal);
    storage::DiskConfig config;
    config.cluster = base::Uuid::from_random(1, 1);
    config.broker = model::BrokerId(1);
    config.incarnation = base::Uuid::from_random(2, 2);
    config.tail_cache_bytes = 4 << 20;
    if (options_.journal_mib > 0)
      config.journal_file_bytes_min = config.journal_file_bytes_max = options_.journal_mib << 20;
    const storage::DiskThreads threads(executor_, reads_, appends_, syncs_);
    auto disk = storage::Disk::open(*std::move(directory), config, files_, threads, home_,
                                    counters_, refusal);
    disk_ = *std::move(disk);
    std::vector<storage::LogSpec> known;
    const auto topic = base::Uuid::from_random(3, 3);
    for (std::size_t i = 0; i < parts_.size(); ++i)
      known.push_back({{topic, static_cast<std::int32_t>(i)}, "bench", {}, &home_});
    auto recovering = disk_->recover(std::move(known), {}, {});
    if (!testing::run(home_, std::move(recovering), std::chrono::minutes(10))) std::abort();
    disk_->start();
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      parts_[i].log = disk_->find({topic, static_cast<std::int32_t>(i)});
      static_cast<void>(parts_[i].log->start_epoch(model::LeaderEpoch(1)));
      parts_[i].batch = make_batch(options_.value_bytes);
    }
  }

  void measure() {
    start_ = Clock::now();
    const DeviceWork before = device_work(options_.folder);
    for (auto& part : parts_) {
      part.log->on_changed([this, &part] { answered(part); });
      send(part);
    }
    auto waiting = until_end();
    testing::run(home_, std::move(waiting), std::chrono::hours(1));
    measured.seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    const DeviceWork after = device_work(options_.folder);
    measured.device = {after.writes - before.writes, after.sectors - before.sectors,
                       after.flushes - before.flushes};
    files = journal_files();
    groups = counters_.get("storage_journal_groups_total").value();
    journal_bytes = counters_.get("storage_journal_bytes_total").value();
    switches = counters_.get("storage_journal_files_begun_total").value();
    stalls = counters_.get("storage_journal_stalls_total").value();
    syncs = counters_.get("storage_syncs_total").value();
    for (auto& part : parts_) part.log->on_changed({});
  }

  void send(Partition& part) {
    part.sent = Clock::now();
    // The batch is stamped in place: each append has its own.
    auto owner = base::BufferPool::shared().take(part.batch.bytes.size());
    std::copy(part.batch.bytes.begin(), part.batch.bytes.end(), owner.data());
    const base::MutableBytes bytes(owner.data(), part.batch.bytes.size());
    if (!part.log->appends_inline()) {
      part.wanted = model::advance(part.log->log_end_offset(), 1);
      return home_.spawn("append", append_later(part, std::move(owner), bytes, ending_));
    }
    const auto info = part.log->append(std::move(owner), bytes);
    if (!info) std::abort();
    part.wanted = info->end_offset;
  }

  static asio::awaitable<void> append_later(Partition& part, base::Buffer owner,
                                            base::MutableBytes bytes, const bool& ending) {
    const auto parsed = model::parse_produced(bytes, 16u << 20);
    if (!parsed) std::abort();
    const auto info = co_await part.log->append_later(std::move(owner), bytes, *parsed);
    if (!info && !ending) std::abort();
  }

  void answered(Partition& part) {
    if (part.log->durable_offset() < part.wanted) return;
    measured.add(part.sent, Clock::now());
    if (!ending_) send(part);
  }

  /// At least the time asked for, then until the journal has gone round often enough.
  asio::awaitable<void> until_end() {
    while (!ending_) {
      co_await home_.sleep_for(std::chrono::milliseconds(100));
      const auto spent = Clock::now() - start_;
      const bool long_enough = spent >= std::chrono::seconds(options_.seconds);
      const auto begun = counters_.get("storage_journal_files_begun_total").value();
      const bool round = begun > journal_files() * options_.cycles;
      ending_ = (long_enough && round) || spent >= std::chrono::seconds(10 * options_.seconds);
    }
  }

  [[nodiscard]] std::int64_t journal_files() const {
    const fs::directory_iterator files(options_.folder + "/mq-bench/journal");
    return std::distance(begin(files), end(files));
  }

  const Options& options_;
  base::PosixFileSystem files_;
  base::RealRuntime home_;
  base::ThreadDiskExecutor executor_{kDiskThreads};
  base::ThreadDiskExecutor reads_{2};
  base::ThreadDiskExecutor appends_{4};
  base::ThreadDiskExecutor syncs_{8};
  base::Counters counters_;
  std::unique_ptr<storage::Disk> disk_;
  std::vector<Partition> parts_;
  Clock::time_point start_;
  bool ending_ = false;
};

/// Each partition a file, each append a write and an fdatasync.
Measured run_baseline(const Options& options, int partitions) {
  const std::string folder = options.folder + "/mq-bench-fsync";
  fs::remove_all(folder);
  fs::create_directories(folder);
  const auto batch = make_batch(options.value_bytes);
  std::vector<int> fds;
  for (int i = 0; i < partitions; ++i)
    fds.push_back(::open((folder + "/" + std::to_string(i)).c_str(), O_CREAT | O_RDWR, 0600));
  const int threads = std::min(partitions, options.baseline_threads);
  std::vector<Measured> each(static_cast<std::size_t>(threads));
  std::vector<std::thread> running;
  const auto before = device_work(options.folder);
  const auto start = Clock::now();
  const auto end = start + std::chrono::seconds(options.seconds);
  for (int t = 0; t < threads; ++t) {
    running.emplace_back([&, t] {
      std::vector<off_t> at(fds.size());
      while (Clock::now() < end) {
        for (std::size_t i = static_cast<std::size_t>(t); i < fds.size() && Clock::now() < end;
             i += static_cast<std::size_t>(threads)) {
          const auto sent = Clock::now();
          if (::pwrite(fds[i], batch.bytes.data(), batch.bytes.size(), at[i]) < 0 ||
              ::fdatasync(fds[i]) != 0)
            std::abort();
          at[i] += static_cast<off_t>(batch.bytes.size());
          each[static_cast<std::size_t>(t)].add(sent, Clock::now());
        }
      }
    });
  }
  for (auto& thread : running) thread.join();
  Measured all;
  for (auto& one : each) {
    all.ms.insert(all.ms.end(), one.ms.begin(), one.ms.end());
    all.stall_ms = std::max(all.stall_ms, one.stall_ms);
  }
  all.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const auto after = device_work(options.folder);
  all.device = {after.writes - before.writes, after.sectors - before.sectors,
                after.flushes - before.flushes};
  for (const int fd : fds) ::close(fd);
  fs::remove_all(folder);
  return all;
}

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const auto value = [&] { return std::string(i + 1 < argc ? argv[++i] : ""); };
    if (arg == "--seconds") {
      options.seconds = std::max(1, std::atoi(value().c_str()));
    } else if (arg == "--cycles") {
      options.cycles = std::atoi(value().c_str());
    } else if (arg == "--value-bytes") {
      options.value_bytes = std::strtoull(value().c_str(), nullptr, 10);
    } else if (arg == "--journal-mib") {
      options.journal_mib = std::strtoull(value().c_str(), nullptr, 10);
    } else if (arg == "--baseline-threads") {
      options.baseline_threads = std::max(1, std::atoi(value().c_str()));
    } else if (arg == "--no-baseline") {
      options.baseline = false;
    } else if (arg == "--partitions") {
      options.partitions.clear();
      const std::string list = value();
      for (std::size_t at = 0; at < list.size();
           at = std::min(list.find(',', at), list.size() - 1) + 1)
        options.partitions.push_back(std::max(1, std::atoi(list.c_str() + at)));
    } else if (options.folder.empty() && arg[0] != '-') {
      options.folder = arg;
    } else {
      return false;
    }
  }
  return !options.folder.empty();
}

void print(const char* what, int partitions, Measured& measured) {
  std::printf(
      R"({"what":"%s","partitions":%d,"appends_per_s":%.1f,"p50_ms":%.2f,"p99_ms":%.2f,"longest_stall_ms":%.1f,"seconds":%.1f,"device_writes":%lld,"device_mib":%lld,"device_flushes":%lld)",
      what, partitions, measured.rate(), measured.percentile(0.5), measured.percentile(0.99),
      measured.stall_ms, measured.seconds, measured.device.writes, measured.device.sectors >> 11,
      measured.device.flushes);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, options)) {
    std::fprintf(stderr,
                 "usage: storage_bench FOLDER [--partitions N,N] [--seconds N] [--cycles N] "
                 "[--value-bytes N] [--journal-mib N] [--baseline-threads N] [--no-baseline]\n");
    return 2;
  }
  for (const int partitions : options.partitions) {
    JournalBench bench(options, partitions);
    bench.run();
    print("journal", partitions, bench.measured);
    std::printf(
        R"(,"groups":%lld,"journal_bytes":%lld,"files_begun":%lld,"files":%lld,"stalls":%lld,"syncs":%lld)",
        static_cast<long long>(bench.groups), static_cast<long long>(bench.journal_bytes),
        static_cast<long long>(bench.switches), static_cast<long long>(bench.files),
        static_cast<long long>(bench.stalls), static_cast<long long>(bench.syncs));
    if (options.baseline) {
      std::printf("}\n");
      Measured baseline = run_baseline(options, partitions);
      print("fdatasync_per_partition", partitions, baseline);
      std::printf(R"(,"threads":%d,"journal_is_times":%.1f)",
                  std::min(partitions, options.baseline_threads),
                  bench.measured.rate() / baseline.rate());
    }
    std::printf("}\n");
    std::fflush(stdout);
  }
  return 0;
}
