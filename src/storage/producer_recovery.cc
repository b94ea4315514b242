#include "storage/producer_recovery.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/log.h"
#include "base/mutants.h"
#include "storage/batch_scanner.h"
#include "storage/sealed_file.h"
#include "storage/storage_format.h"

namespace mq::storage {
namespace {

using base::OpenMode;
using model::Offset;

class ProducerRecovery {
 public:
  ProducerRecovery(base::FileSystem& files, const ProducerRecoverySpec& spec)
      : files_(files), spec_(spec) {}

  Result<RecoveredProducers> run();

 private:
  struct From {
    std::size_t segment = 0;
    std::uint64_t position = 0;
    Offset offset;
  };

  [[nodiscard]] std::string path(const std::string& name) const {
    return spec_.directory + "/" + name;
  }
  [[nodiscard]] std::uint64_t bytes_of(std::size_t segment) const {
    return segment + 1 == spec_.segments.size() ? spec_.end.position
                                                : spec_.segments[segment].bytes;
  }
  Result<void> remove_useless();
  bool take_snapshot(Offset offset);
  [[nodiscard]] bool belongs_here(const ProducerSnapshot& snapshot, std::size_t segment) const;
  Result<void> find_start_without_snapshot();
  Result<void> scan();
  Result<void> scan_segment(std::size_t i, std::uint64_t position, Offset expected);

  base::FileSystem& files_;
  const ProducerRecoverySpec& spec_;
  RecoveredProducers found_;
  From from_;
};

Result<RecoveredProducers> ProducerRecovery::run() {
  MQ_TRY_VOID(remove_useless());
  bool taken = false;
  auto& snapshots = found_.snapshots;
  while (!taken && !snapshots.empty()) {
    taken = take_snapshot(snapshots.back());
    if (taken) break;
    base::log_warning("storage", "{}: not the producers of this log, ignored",
                      path(producers_file_name(snapshots.back())));
    MQ_TRY_VOID(remove_if_there(files_, path(producers_file_name(snapshots.back()))));
    snapshots.pop_back();
  }
  if (!taken) {
    MQ_TRY_VOID(find_start_without_snapshot());
  }
  MQ_TRY_VOID(scan());
  found_.table.forget_below(spec_.log_start_offset);
  if (MQ_MUTANT("dedup_forgotten_at_start")) found_.table = ProducerTable();
  return std::move(found_);
}

Result<void> ProducerRecovery::remove_useless() {
  bool above = false;
  for (const Offset offset : spec_.snapshots) {
    if (offset <= spec_.end.offset && offset > spec_.segments.front().base_offset) {
      found_.snapshots.push_back(offset);
      continue;
    }
    MQ_TRY_VOID(remove_if_there(files_, path(producers_file_name(offset))));
    above = above || offset > spec_.end.offset;
  }
  if (above) {
    MQ_TRY_VOID(files_.sync_directory(spec_.directory));
  }
  std::ranges::sort(found_.snapshots);
  return {};
}

/// A snapshot that cannot be read, whatever the reason, is one that is not there.
bool ProducerRecovery::take_snapshot(Offset offset) {
  auto snapshot =
      load_producer_snapshot(files_, path(producers_file_name(offset)), spec_.partition, offset);
  if (!snapshot) return false;
  const auto segment = std::ranges::find(spec_.segments, snapshot->segment_base,
                                         &ProducerRecoverySpec::Segment::base_offset);
  if (segment == spec_.segments.end()) return false;
  const auto i = static_cast<std::size_t>(segment - spec_.segments.begin());
  if (!belongs_here(*snapshot, i)) return false;
  found_.table = std::move(snapshot->producers);
  found_.last_batch = snapshot->last_batch;
  from_ = {i, snapshot->position, offset};
  return true;
}

bool ProducerRecovery::belongs_here(const ProducerSnapshot& snapshot, std::size_t segment) const {
  if (snapshot.position > bytes_of(segment)) return false;
  if (snapshot.position == 0 && snapshot.end_offset != snapshot.segment_base) return false;
  const bool at_end =
      snapshot.end_offset == spec_.end.offset && snapshot.position == spec_.end.position;
  if (spec_.clean && at_end) return true;
  const BatchPlace& last = snapshot.last_batch;
  const auto file = files_.open(path(segment_file_name(last.segment_base)), OpenMode::read);
  if (!file) return false;
  std::array<std::byte, model::batch_format::kHeaderBytes> bytes;
  const auto read = (*file)->read_at(bytes, last.position);
  if (!read) return false;
  const auto batch =
      model::RecordBatchView::parse_header(base::Bytes(bytes).first(std::min(*read, bytes.size())));
  return batch && batch->stamp_crc() == last.stamp_crc &&
         batch->end_offset() == snapshot.end_offset;
}

/// Nothing older than the table remembers has to be read: begins with the last segment whose first
/// batch is that old. How old that is follows from the settled time, which lies no further back
/// than the fourth stretch in which a segment's first batch, or the last of all, was appended.
Result<void> ProducerRecovery::find_start_without_snapshot() {
  std::int64_t oldest = std::numeric_limits<std::int64_t>::min();
  std::int64_t stretch = SettledTime::stretch_of(spec_.end.append_time_ms);
  std::size_t stretches = 1;
  std::size_t i = spec_.segments.size() - 1;
  for (; i > 0; --i) {
    MQ_TRY(const auto file,
           files_.open(path(segment_file_name(spec_.segments[i].base_offset)), OpenMode::read));
    BatchScanner scanner(*file, {}, bytes_of(i), BatchScanner::Depth::headers);
    MQ_TRY_VOID(scanner.next());
    if (scanner.at_end() || scanner.state() != BatchState::good) continue;
    const std::int64_t time_ms = scanner.view().append_time_ms();
    if (time_ms < oldest) break;
    if (stretches == SettledTime::kStretches || SettledTime::stretch_of(time_ms) == stretch)
      continue;
    stretch = SettledTime::stretch_of(time_ms);
    if (++stretches == SettledTime::kStretches) oldest = time_ms - ProducerTable::kRememberedMs;
  }
  from_ = {i, 0, spec_.segments[i].base_offset};
  return {};
}

Result<void> ProducerRecovery::scan() {
  Offset expected = from_.offset;
  for (std::size_t i = from_.segment; i < spec_.segments.size(); ++i) {
    if (i > from_.segment) expected = spec_.segments[i].base_offset;
    MQ_TRY_VOID(scan_segment(i, i == from_.segment ? from_.position : 0, expected));
    if (!found_.problem.empty()) return {};
  }
  return {};
}

/// The whole batch is checked: a producer's name is under the body's checksum.
Result<void> ProducerRecovery::scan_segment(std::size_t i, std::uint64_t position,
                                            Offset expected) {
  const Offset base = spec_.segments[i].base_offset;
  if (position >= bytes_of(i)) return {};
  MQ_TRY(const auto file, files_.open(path(segment_file_name(base)), OpenMode::read));
  BatchScanner::Start start;
  start.position = position;
  start.expected = expected;
  BatchScanner scanner(*file, start, bytes_of(i), BatchScanner::Depth::whole);
  while (true) {
    MQ_TRY_VOID(scanner.next());
    if (scanner.at_end()) return {};
    if (scanner.state() != BatchState::good) {
      auto problem = fmt::format("{} position {}: {}", segment_file_name(base), scanner.position(),
                                 state_name(scanner.state()));
      // What was trimmed away may be damaged, and is forgotten anyway.
      MQ_TRY_VOID(scanner.step_over_below(spec_.log_start_offset));
      if (!scanner.is_good()) {
        found_.problem = std::move(problem);
        return {};
      }
    }
    found_.table.note(scanner.view());
    found_.last_batch = {base, scanner.position(), scanner.view().stamp_crc()};
    found_.bytes_scanned += scanner.batch_bytes();
  }
}

}  // namespace

Result<RecoveredProducers> recover_producers(base::FileSystem& files,
                                             const ProducerRecoverySpec& spec) {
  return ProducerRecovery(files, spec).run();
}

}  // namespace mq::storage
