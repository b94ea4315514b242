#include <algorithm>

#include "model/record_batch_format.h"
#include "storage/log_inspect.h"
#include "storage/storage_format.h"

namespace mq::storage {
namespace {

namespace format = model::batch_format;
using model::Offset;

/// No batch behind a damaged place begins further away than this.
constexpr std::int64_t kOffsetsAway = std::int64_t{1} << 40;
constexpr std::uint64_t kStride = std::uint64_t{1} << 20;

bool may_begin(base::Bytes bytes, Offset after, std::uint64_t room) {
  const auto base = base::load_le<std::int64_t>(bytes.data() + format::kBaseOffset);
  if (base <= after.value() || base - after.value() > kOffsetsAway) return false;
  const auto length = model::peek_batch_bytes(bytes);
  return length && *length <= room && model::stamp_crc_holds(bytes);
}

/// The first batch at or behind `from`, at whatever byte, that is whole and holds records above
/// `after`; -1: there is none.
Result<Offset> find_sound_batch(base::File& file, std::uint64_t from, std::uint64_t end,
                                Offset after) {
  auto buffer = base::BufferPool::shared().take(kStride + format::kStableBytes);
  for (std::uint64_t at = from; at + format::kStableBytes <= end; at += kStride) {
    const auto wanted = std::min<std::uint64_t>(kStride + format::kStableBytes, end - at);
    MQ_TRY(const auto got,
           file.read_at(buffer.bytes().first(static_cast<std::size_t>(wanted)), at));
    const auto chunk = base::Bytes(buffer.bytes()).first(got);
    for (std::size_t i = 0; i < kStride && i + format::kStableBytes <= chunk.size(); ++i) {
      if (!may_begin(chunk.subspan(i), after, end - at - i)) continue;
      BatchScanner scanner(file, {.position = at + i}, end, BatchScanner::Depth::whole);
      MQ_TRY_VOID(scanner.next());
      if (scanner.is_good()) return scanner.view().base_offset();
    }
  }
  return Offset();
}

/// Where something else than the damaged batch can begin.
std::uint64_t behind(const InspectedBatch& batch) {
  switch (batch.state) {
    case BatchState::bad_offset:  // it may be sound itself
      return batch.position;
    case BatchState::zeros:
      return batch.segment->bytes;
    case BatchState::bad_body_crc:
    case BatchState::bad_epoch:
      return batch.position + batch.batch_bytes;
    default:
      return batch.position + 1;
  }
}

class Verification {
 public:
  Verification(base::FileSystem& files, const PartitionDirectory& partition)
      : files_(files), partition_(partition) {}

  Result<VerifyReport> run() {
    report_.log_start_offset = report_.end_offset = Offset(0);
    if (!partition_.segments.empty())
      report_.log_start_offset = report_.end_offset = partition_.segments.front().base_offset;
    if (partition_.log_start_offset) report_.log_start_offset = *partition_.log_start_offset;
    std::optional<InspectedBatch> bad;
    const auto visit = [&](const InspectedBatch& batch) {
      if (batch.state == BatchState::good) {
        count(batch);
      } else {
        bad = batch;
      }
      return !bad;
    };
    MQ_TRY_VOID(for_each_batch(files_, partition_, std::nullopt, visit));
    if (bad) {
      MQ_TRY_VOID(judge(*bad));
    } else {
      look_for_the_end();
    }
    return std::move(report_);
  }

 private:
  void count(const InspectedBatch& batch) {
    ++report_.batches;
    report_.records += batch.view.record_count();
    report_.bytes += batch.batch_bytes;
    report_.end_offset = batch.view.end_offset();
    last_good_ = batch.view.last_offset();
  }

  /// Up to here the segments hold everything themselves.
  [[nodiscard]] Offset synced() const {
    const auto checkpoint = partition_.recovery_point.value_or(Offset(0));
    return partition_.journal ? std::max(checkpoint, partition_.journal->recovery_point)
                              : checkpoint;
  }
  /// Up to here everything was durable, wherever.
  [[nodiscard]] Offset durable() const {
    return partition_.journal ? std::max(synced(), partition_.journal->bound) : synced();
  }
  /// A start puts back what is missing from the log's sound end on.
  [[nodiscard]] bool journal_mends() const {
    return partition_.journal && report_.end_offset >= synced() &&
           report_.end_offset >= partition_.journal->covers_from;
  }

  Result<void> judge(const InspectedBatch& batch) {
    VerifyReport::Damage damage;
    damage.file = batch.segment->path;
    damage.position = batch.position;
    damage.state = batch.state;
    damage.want = batch.want;
    damage.got = batch.got;
    damage.last_good_offset = last_good_;
    const bool kept = batch.state == BatchState::unsupported || batch.state == BatchState::invalid;
    const bool bound_known = partition_.recovery_point || partition_.journal;
    if (kept || !bound_known) {
      // A start would not cut it.
    } else if (report_.end_offset < durable()) {
      damage.durable_to = durable();
      damage.torn_tail = damage.from_journal = journal_mends();
    } else {
      MQ_TRY(damage.sound_from, sound_behind(batch));
      damage.torn_tail = damage.sound_from == Offset();
    }
    report_.good = damage.torn_tail;
    report_.damage = std::move(damage);
    return {};
  }

  Result<Offset> sound_behind(const InspectedBatch& batch) {
    for (const auto& segment : partition_.segments) {
      if (segment.base_offset < batch.segment->base_offset) continue;
      const std::uint64_t from = &segment == batch.segment ? behind(batch) : 0;
      MQ_TRY(const auto file, files_.open(segment.path, base::OpenMode::read));
      MQ_TRY(const auto found, find_sound_batch(*file, from, segment.bytes, report_.end_offset));
      if (found != Offset()) return found;
    }
    return Offset();
  }

  /// Fewer bytes than were once durable: the tail is gone without a trace.
  void look_for_the_end() {
    if (report_.end_offset >= durable() || journal_mends()) return;
    report_.good = false;
    VerifyReport::Damage damage;
    damage.state = BatchState::torn;
    damage.last_good_offset = last_good_;
    damage.durable_to = durable();
    damage.want = static_cast<std::uint64_t>(durable().value());
    damage.got = static_cast<std::uint64_t>(report_.end_offset.value());
    if (!partition_.segments.empty()) {
      damage.file = partition_.segments.back().path;
      damage.position = partition_.segments.back().bytes;
    }
    report_.damage = std::move(damage);
  }

  base::FileSystem& files_;
  const PartitionDirectory& partition_;
  VerifyReport report_;
  Offset last_good_;
};

}  // namespace

std::optional<JournalPlace> find_journal(base::FileSystem& files, const std::string& data,
                                         const std::string& elsewhere) {
  const auto identity = read_identity(files, data);
  if (!identity || !*identity || (*identity)->journal.is_zero()) return std::nullopt;
  JournalPlace journal;
  journal.owner = {(*identity)->cluster, (*identity)->broker, (*identity)->disk,
                   (*identity)->journal};
  journal.directory = data + "/" + std::string(kJournalDirectory);
  if (!elsewhere.empty()) {
    const auto own = elsewhere + "/" + (*identity)->disk.hex();
    const auto there = files.exists(own);
    journal.directory = there && *there ? own : elsewhere;
  }
  return journal;
}

void take_from_journal(base::FileSystem& files, const JournalPlace& journal,
                       std::vector<PartitionDirectory>& partitions) {
  const auto replay = replay_journal(files, journal.directory, journal.owner);
  if (!replay || replay->lost || replay->damaged) return;
  for (auto& partition : partitions) {
    const auto log = replay->logs.find(partition.id);
    // A cut that is not done in the files leaves them as they were.
    if (log == replay->logs.end() || log->second.state.cut) continue;
    const auto& state = log->second.state;
    partition.journal = {state.recovery_point.offset, log->second.bound(),
                         std::max(state.recovery_point.offset, log->second.covered_from)};
  }
}

Result<VerifyReport> verify_partition(base::FileSystem& files,
                                      const PartitionDirectory& partition) {
  return Verification(files, partition).run();
}

}  // namespace mq::storage
