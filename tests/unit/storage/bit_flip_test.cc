// One flipped bit in any file of a data directory: whatever the next start makes of it, no reader
// gets a byte that nobody appended, nothing durable is cut, and what is lost is named.

#include <cstdlib>

#include "producer_world.h"
#include "storage/storage_format.h"

namespace mq::testing {
namespace {

using model::Offset;

constexpr int kPartitions = 3;
constexpr std::int64_t kProducers = 3;

/// How the process before ended.
enum class End { clean, killed, killed_at_once };
constexpr std::pair<End, const char*> kEnds[] = {
    {End::clean, "after a clean stop"},
    {End::killed, "after a kill, all durable"},
    {End::killed_at_once, "after a kill under load"},
};

struct Appended {
  Offset base;
  Offset end;
  std::vector<std::byte> bytes;
};

/// A data directory with everything in it, what its logs hold, and starts from copies of it with
/// one bit changed.
class Flipped {
 public:
  explicit Flipped(End how, std::uint64_t seed) : world_(seed), random_(seed) {
    world_.config.index_stride_bytes = 2'000;
    world_.config.tail_cache_bytes = 1;  // readers go to the files
    world_.config.journal_file_bytes_min = world_.config.journal_file_bytes_max = 64u << 10;
    world_.settings.retention_age = std::chrono::milliseconds(0);
    world_.settings_of[1] = world_.settings;
    world_.settings_of[1].durability = model::Durability::memory;
    world_.start(kPartitions);
    fill(60);
    EXPECT_TRUE(world_.trim(Offset(31)));
    world_.pass(std::chrono::seconds(70));
    EXPECT_TRUE(world_.stop());  // a second epoch in each log
    world_.start(kPartitions);
    fill(150);
    world_.pass(std::chrono::seconds(12));
    fill(30);
    if (how == End::killed) world_.pass(std::chrono::seconds(70));
    for (int i = 0; i < kPartitions; ++i) {
      durable_[i] = world_.log(i).durable_offset();
      start_[i] = world_.log(i).log_start_offset();
    }
    if (how == End::clean) {
      EXPECT_TRUE(world_.stop());
      for (int i = 0; i < kPartitions; ++i)
        if (!appended_[i].empty()) durable_[i] = appended_[i].back().end;
    } else {
      world_.kill();
    }
    golden_ = world_.files->clone();
    files_ = golden_->files_below(StorageWorld::kPath);
  }

  [[nodiscard]] const std::vector<std::string>& files() const { return files_; }

  /// The first broken promise; empty: all were kept.
  std::string try_one(const std::string& file) {
    const auto size = golden_->content(file).size();
    if (size == 0) return {};
    // Often near the beginning, where the headers are.
    const auto at = random_.below(random_.chance(0.3) ? std::min<std::uint64_t>(size, 64) : size);
    const auto mask = static_cast<std::byte>(1u << random_.below(8));
    world_.files = golden_->clone();
    world_.files->flip(file, at, mask);
    world_.lines.clear();
    world_.refusal = {};
    auto broken = start_and_look(file);
    if (world_.disk) world_.kill();
    if (!broken.empty())
      broken = fmt::format("{} byte {} of {} mask {:02x}: {}", file, at, size,
                           static_cast<unsigned>(mask), broken);
    return broken;
  }

  std::uint64_t refused = 0;
  std::uint64_t offline = 0;
  std::uint64_t unreadable = 0;

 private:
  void fill(int batches) {
    for (int i = 0; i < batches; ++i) {
      const int partition = i % (kPartitions - 1);  // one stays empty
      const auto id = static_cast<std::int64_t>(random_.below(kProducers));
      auto batch = named_batch(id, 0, next_[{partition, id}], 3, 100 + random_.below(3'000));
      next_[{partition, id}] += 3;
      const auto info = world_.append_batch(batch, partition);
      EXPECT_TRUE(info);
      appended_[partition].push_back(
          {info->base_offset, info->end_offset, {batch.bytes.begin(), batch.bytes.end()}});
      if (i % 10 == 0) world_.pass(std::chrono::milliseconds(20));
    }
  }

  static bool is_cache(const std::string& file) {
    return file.ends_with(storage::kIndexSuffix) || file.ends_with(storage::kTimeIndexSuffix) ||
           file.ends_with(storage::kProducersSuffix);
  }
  static bool is_segment(const std::string& file) {
    return file.ends_with(storage::kSegmentSuffix);
  }

  std::string start_and_look(const std::string& file) {
    const auto started = world_.try_start(kPartitions);
    if (!started) {
      ++refused;
      if (is_cache(file) || is_segment(file)) return "the start was refused";
      if (world_.refusal.text.empty()) return "refused without a word";
      return segments_changed() ? "a refused start changed a segment" : "";
    }
    for (int i = 0; i < kPartitions; ++i) {
      auto broken = look_at(i, file);
      if (!broken.empty()) return fmt::format("partition {}: {}", i, broken);
    }
    return {};
  }

  bool segments_changed() {
    return std::ranges::any_of(files_, [&](const std::string& file) {
      if (!is_segment(file)) return false;
      return world_.files->content(file).size() != golden_->content(file).size();
    });
  }

  std::string look_at(int partition, const std::string& file) {
    auto& log = world_.log(partition);
    if (const auto failure = log.failure()) {
      ++offline;
      if (failure != make_error_code(StorageErrc::partition_corrupt) &&
          failure != make_error_code(StorageErrc::unsupported_format))
        return "offline because of " + failure.message();
      if (is_cache(file)) return "offline because of a cache";
      if (world_.complaints(world_.id(partition).text()) == 0) return "offline without a word";
      return {};
    }
    const auto& appended = appended_[partition];
    const Offset end = log.log_end_offset();
    if (end < durable_[partition])
      return fmt::format("ends at {}, {} was durable", end, durable_[partition]);
    if (!appended.empty() && end > appended.back().end) return "ends above what was appended";
    if (!is_segment(file) && !appended.empty() && end != appended.back().end)
      return fmt::format("ends at {}, not at {}", end, appended.back().end);
    if (log.log_start_offset() != start_[partition])
      return fmt::format("starts at {}, not at {}", log.log_start_offset(), start_[partition]);
    bool whole = true;
    auto broken = read_all(partition, end, whole);
    if (!broken.empty()) return broken;
    if (whole && partition < kPartitions - 1) expect_remembered_as_in_the_log(world_, partition);
    if (!whole && !is_segment(file)) return "cannot be read, and no segment was damaged";
    return {};
  }

  /// Every batch that can be read is what was appended; what cannot is named.
  std::string read_all(int partition, Offset end, bool& whole) {
    for (const auto& batch : appended_[partition]) {
      if (batch.end <= start_[partition] || batch.base >= end) continue;
      const auto from = std::max(batch.base, start_[partition]);
      const auto got = world_.read(from, 1, partition);
      if (!got) {
        whole = false;
        ++unreadable;
        if (got.error() != make_error_code(StorageErrc::partition_corrupt))
          return fmt::format("offset {}: {}", from, got.error().message());
        if (world_.complaints("cannot be read") == 0) return "unreadable without a word";
        continue;
      }
      std::vector<std::byte> bytes;
      for (const auto& piece : got->batches)
        bytes.insert(bytes.end(), piece.bytes.begin(), piece.bytes.end());
      if (bytes != batch.bytes) return fmt::format("other bytes at offset {}", from);
    }
    return {};
  }

  void expect_remembered_as_in_the_log(StorageWorld& world, int partition) {
    storage::ProducerTable expected;
    for (const auto& batch : appended_[partition]) {
      if (batch.end > start_[partition] && batch.base < world.log(partition).log_end_offset())
        expected.note(*model::RecordBatchView::parse(batch.bytes));
    }
    for (std::int64_t id = 0; id < kProducers; ++id)
      EXPECT_EQ(remembered(world.log(partition).find_producer(id)), remembered(expected.find(id)));
  }

  StorageWorld world_;
  SimRandom random_;
  std::map<std::pair<int, std::int64_t>, std::int32_t> next_;
  std::array<std::vector<Appended>, kPartitions> appended_;
  std::array<Offset, kPartitions> durable_;
  std::array<Offset, kPartitions> start_;
  std::unique_ptr<SimFileSystem> golden_;
  std::vector<std::string> files_;
};

/// MQ_STORAGE_SEED for another seed, MQ_STORAGE_FLIPS for more of them in each file.
std::uint64_t number(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// LOG-3, LOG-4, LOG-5, REC-1
TEST(BitFlips, NoStartServesAWrongByteOrCutsWhatIsDurable) {
  for (const auto& [how, name] : kEnds) {
    SCOPED_TRACE(name);
    Flipped flipped(how, number("MQ_STORAGE_SEED", 1));
    std::set<std::string> kinds;
    for (const auto& file : flipped.files()) {
      const auto base_name = file.substr(file.rfind('/') + 1);
      kinds.insert(base_name.find('.') == std::string::npos
                       ? base_name
                       : base_name.substr(base_name.find('.')));
      for (std::uint64_t i = 0; i < number("MQ_STORAGE_FLIPS", 10); ++i) {
        const auto broken = flipped.try_one(file);
        ASSERT_EQ(broken, "");
        ASSERT_FALSE(::testing::Test::HasFailure()) << file;
      }
    }
    for (const char* kind : {"identity", "checkpoint", "running", "topic", ".log", ".index",
                             ".time", ".producers", ".journal"})
      EXPECT_TRUE(kinds.contains(kind)) << kind;
    EXPECT_EQ(kinds.contains("clean"), how == End::clean);
    EXPECT_GT(flipped.refused, 0u);
    EXPECT_GT(flipped.unreadable + flipped.offline, 0u);
  }
}

// LOG-9: a batch is of a newer format only if its checksums hold.
TEST(BitFlips, AFlippedFormatByteIsDamage) {
  for (const std::uint64_t byte : {32u, 34u, 36u}) {  // version, codec, required flags
    for (const std::size_t cache_bytes : {1u, 1u << 20}) {
      StorageWorld world;
      world.config.tail_cache_bytes = cache_bytes;
      world.start();
      for (int i = 0; i < 10; ++i) world.append(1, 500);
      ASSERT_TRUE(world.stop());
      world.files->flip(world.segment(0), byte, std::byte{0x10});
      world.start();
      EXPECT_EQ(world.read(Offset(0)).error(), make_error_code(StorageErrc::partition_corrupt))
          << byte;
      EXPECT_EQ(world.complaints("cannot be read"), 1) << byte;
    }
  }
}

}  // namespace
}  // namespace mq::testing
