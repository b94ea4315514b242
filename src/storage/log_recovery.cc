#include "storage/log_recovery.h"

#include <algorithm>

#include "base/log.h"
#include "base/mutants.h"
#include "storage/batch_scanner.h"
#include "storage/producer_recovery.h"
#include "storage/storage_format.h"

namespace mq::storage {
namespace {

using base::OpenMode;
using model::Offset;

Result<RecoveredLog> create_one(DiskState& disk, const RecoverySpec& spec);

/// REC-5: whatever a sync failed of, also want of space, is no reason to try again.
Result<void> sync_once(base::File& file) {
  if (file.sync_all()) return {};
  return make_error_code(base::BaseErrc::io_failed);
}

/// One log under recovery.
class LogRecovery {
 public:
  LogRecovery(DiskState& disk, const RecoverySpec& spec)
      : disk_(disk), files_(disk.files), spec_(spec) {}

  Result<RecoveredLog> run() {
    MQ_TRY_VOID(find_end());
    if (!log_.failure) {
      MQ_TRY_VOID(find_producers());
    }
    return std::move(log_);
  }

 private:
  using Segment = RecoveredLog::Segment;
  struct Cut {
    std::size_t segment = 0;  // index into log_.segments
    std::uint64_t position = 0;
    BatchState why = BatchState::torn;
    Offset end;  // of the log after the cut
  };

  [[nodiscard]] std::string path(const std::string& name) const {
    return spec_.directory + "/" + name;
  }
  Result<void> find_end();
  Result<void> restore();
  void check_bound();
  Result<void> find_producers();
  Result<void> find_segments();
  Result<void> remove_expired();
  bool start_from_checkpoint();
  void start_without_checkpoint();
  bool sealed_segments_are_there();
  [[nodiscard]] bool matches_clean_marker() const;
  void take_clean();
  void start_indexes(Offset base_offset);
  Result<void> scan();
  Result<void> scan_segment(std::size_t i);
  void begin_segment(std::size_t i);
  void take_restored();
  void note(const RestoredBatch& batch);
  void accept(const BatchScanner& scanner);
  void stop_at(std::size_t i, const BatchScanner& scanner);
  Result<void> cut_torn_tail();
  Result<void> sync_kept();
  void finish();
  void offline(StorageErrc errc, std::string problem);
  void corrupt(std::string problem) { offline(StorageErrc::partition_corrupt, std::move(problem)); }
  [[nodiscard]] bool may_cut(std::size_t i) const;

  DiskState& disk_;
  base::FileSystem& files_;
  const RecoverySpec& spec_;
  RecoveredLog log_;
  std::vector<RestoredBatch> restored_;
  std::vector<std::string> cache_files_;
  std::vector<Offset> producer_snapshots_;
  bool clean_ = false;

  SyncPoint bound_;                // the recovery point: nothing below is cut
  std::size_t bound_segment_ = 0;  // index of its segment
  Offset expected_;                // scan: next base offset
  model::LeaderEpoch last_epoch_;
  std::size_t last_ = 0;          // scan: index of the segment that the log ends in
  std::uint64_t last_bytes_ = 0;  // scan: good bytes in it
  std::optional<Cut> cut_;
};

/// Brings the segments to where the journal says that the log was.
Result<void> LogRecovery::restore() {
  const ReplayedLog& journal = *spec_.journal;
  if (journal.gap()) {
    corrupt(fmt::format("the journal lacks what lies between {} and {}",
                        journal.state.recovery_point.offset, journal.covered_from));
    return {};
  }
  const Offset log_start =
      spec_.checkpoint ? spec_.checkpoint->log_start_offset : journal.state.log_start;
  std::string problem;
  auto restored =
      restore_from_journal(files_, spec_.directory, *spec_.replay, journal, log_start, problem);
  if (restored) {
    restored_ = *std::move(restored);
  } else if (problem.empty()) {
    return restored.error();
  } else {
    corrupt(std::move(problem));
  }
  return {};
}

/// REC-1: recovery must have found all that was durable.
void LogRecovery::check_bound() {
  if (log_.failure || !spec_.journal || log_.end.offset >= spec_.journal->bound()) return;
  if (MQ_MUTANT("bad_crc_cuts_the_log")) return;
  corrupt(fmt::format("it ends at {}, but was durable up to {}", log_.end.offset,
                      spec_.journal->bound()));
}

Result<void> LogRecovery::find_end() {
  if (spec_.journal) {
    MQ_TRY_VOID(restore());
    if (log_.failure) return {};
  }
  MQ_TRY_VOID(find_segments());
  if (log_.segments.empty()) {
    const bool had_data =
        (spec_.checkpoint && (spec_.checkpoint->recovery_point.offset > Offset(0) ||
                              !spec_.checkpoint->sealed.empty())) ||
        (spec_.journal && spec_.journal->bound() > Offset(0));
    if (!had_data && !spec_.checkpoint_lost) {
      MQ_TRY(log_, create_one(disk_, spec_));
      return {};
    }
    corrupt("all its segments are missing");
    return {};
  }
  if (spec_.checkpoint) {
    MQ_TRY_VOID(remove_expired());
    if (!start_from_checkpoint() || !sealed_segments_are_there()) return {};
    if (matches_clean_marker()) {
      take_clean();
      check_bound();
      finish();
      return {};
    }
  } else {
    start_without_checkpoint();
    if (log_.failure) return {};
  }
  MQ_TRY_VOID(scan());
  check_bound();
  if (log_.failure) return {};
  MQ_TRY_VOID(cut_torn_tail());
  MQ_TRY_VOID(sync_kept());
  finish();
  return {};
}

/// Who appended what lately, for telling repeats (IDM-4).
Result<void> LogRecovery::find_producers() {
  ProducerRecoverySpec spec;
  spec.partition = spec_.id;
  spec.directory = spec_.directory;
  spec.log_start_offset = log_.log_start_offset;
  for (const auto& segment : log_.segments)
    spec.segments.push_back({segment.base_offset, segment.bytes});
  spec.end = log_.end;
  spec.snapshots = producer_snapshots_;
  spec.clean = clean_;
  MQ_TRY(auto found, recover_producers(files_, spec));
  log_.producer_bytes_scanned = found.bytes_scanned;
  if (!found.problem.empty()) {
    corrupt(std::move(found.problem));
    return {};
  }
  log_.producers = std::move(found.table);
  log_.last_batch = found.last_batch;
  log_.producer_snapshots = std::move(found.snapshots);
  return {};
}

Result<void> LogRecovery::find_segments() {
  const std::string topic_temporary = std::string(kTopicFile) + std::string(kTemporarySuffix);
  MQ_TRY(const auto entries, files_.list_directory(spec_.directory));
  for (const auto& entry : entries) {
    if (const auto base = parse_segment_file_name(entry.name); base && !entry.is_directory) {
      MQ_TRY(const auto file, files_.open(path(entry.name), OpenMode::read));
      MQ_TRY(const auto bytes, file->size());
      log_.segments.push_back({*base, bytes});
    } else if (parse_cache_file_name(entry.name) && !entry.is_directory) {
      cache_files_.push_back(entry.name);
    } else if (const auto end = parse_producers_file_name(entry.name); end && !entry.is_directory) {
      producer_snapshots_.push_back(*end);
    } else if (entry.name == topic_temporary) {
      MQ_TRY_VOID(files_.remove_file(path(entry.name)));  // half of a replacement of ours
    } else if (entry.name != kTopicFile) {
      base::log_warning("storage", "{}: left alone, not a file of a partition",
                        base::printable(path(entry.name), 400));
    }
  }
  return {};
}

/// Retention had raised the log start durably before it began to remove files. The segment of the
/// recovery point stays: a log that was cut down to its start may have gone on in another one.
Result<void> LogRecovery::remove_expired() {
  const Offset start = spec_.checkpoint->log_start_offset;
  const Offset synced = spec_.checkpoint->recovery_point.segment_base;
  auto& segments = log_.segments;
  while (segments.size() > 1 && segments[1].base_offset <= start &&
         segments[0].base_offset < synced) {
    MQ_TRY_VOID(files_.remove_file(path(segment_file_name(segments[0].base_offset))));
    const Offset gone = segments[0].base_offset;
    for (const auto& name : {index_file_name(gone), time_index_file_name(gone)}) {
      if (std::erase(cache_files_, name) == 0) continue;
      MQ_TRY_VOID(files_.remove_file(path(name)));
    }
    segments.erase(segments.begin());
  }
  return {};
}

bool LogRecovery::start_from_checkpoint() {
  const LogCheckpoint& checkpoint = *spec_.checkpoint;
  bound_ = checkpoint.recovery_point;
  log_.log_start_offset = checkpoint.log_start_offset;
  log_.epoch_starts = checkpoint.epoch_starts;
  if (MQ_MUTANT("bad_crc_cuts_the_log")) {
    bound_ = {};
    bound_.offset = bound_.segment_base = log_.segments.front().base_offset;
    return true;
  }
  const auto found = std::ranges::find(log_.segments, bound_.segment_base, &Segment::base_offset);
  if (found == log_.segments.end()) {
    corrupt(fmt::format("segment {} of the recovery point is missing",
                        segment_file_name(bound_.segment_base)));
    return false;
  }
  if (found->bytes < bound_.position) {
    corrupt(fmt::format("segment {} has {} bytes, but {} were synced",
                        segment_file_name(bound_.segment_base), found->bytes, bound_.position));
    return false;
  }
  bound_segment_ = static_cast<std::size_t>(found - log_.segments.begin());
  return true;
}

/// Every segment that was sealed and synced must still be there, whole. Nothing of them is read.
bool LogRecovery::sealed_segments_are_there() {
  if (MQ_MUTANT("bad_crc_cuts_the_log")) return true;
  LogCheckpoint known = *spec_.checkpoint;
  drop_trimmed(known);
  const std::vector<SealedSegment>& expected = known.sealed;
  for (std::size_t i = 0; i < std::max(expected.size(), bound_segment_); ++i) {
    if (i < expected.size() && i < bound_segment_ &&
        expected[i].base_offset == log_.segments[i].base_offset &&
        expected[i].bytes == log_.segments[i].bytes)
      continue;
    const Offset base =
        i < expected.size() ? expected[i].base_offset : log_.segments[i].base_offset;
    corrupt(fmt::format("segment {} is missing, unexpected or of another size",
                        segment_file_name(base)));
    return false;
  }
  return true;
}

/// The checkpoint does not know the log, which is all right for one made since it was written.
void LogRecovery::start_without_checkpoint() {
  const Offset first = log_.segments.front().base_offset;
  if (!spec_.checkpoint_lost && !spec_.journal && first != Offset(0))
    return corrupt(fmt::format("it begins at {} and the checkpoint does not know it", first));
  if (spec_.journal && first > spec_.journal->state.log_start)
    return corrupt(fmt::format("it begins at {}, but its first record is {}", first,
                               spec_.journal->state.log_start));
  bound_.offset = bound_.segment_base = log_.log_start_offset = first;
  if (spec_.journal) log_.log_start_offset = spec_.journal->state.log_start;
  if (spec_.checkpoint_lost) bound_segment_ = 0;
}

bool LogRecovery::matches_clean_marker() const {
  if (!spec_.clean) return false;
  const auto& last = log_.segments.back();
  return spec_.clean->log_end_offset == bound_.offset &&
         spec_.clean->segment_base == bound_.segment_base &&
         last.base_offset == bound_.segment_base && last.bytes == bound_.position &&
         spec_.clean->segment_bytes == last.bytes;
}

void LogRecovery::take_clean() {
  clean_ = true;
  log_.end = bound_;
  start_indexes(bound_.segment_base);
  log_.active_index_from = bound_.position;
}

void LogRecovery::start_indexes(Offset base_offset) {
  log_.active_index = OffsetIndex(base_offset, disk_.config.index_stride_bytes);
  log_.active_times = TimeIndex(base_offset, disk_.config.index_stride_bytes);
}

Result<void> LogRecovery::scan() {
  expected_ = bound_.offset;
  last_epoch_ = bound_.leader_epoch;
  last_ = bound_segment_;
  last_bytes_ = bound_.position;
  log_.end = bound_;
  start_indexes(bound_.segment_base);
  log_.active_index_from = bound_.position;
  take_restored();
  const std::size_t first = last_;
  for (std::size_t i = first; i < log_.segments.size(); ++i) {
    if (i > first && log_.segments[i].base_offset != expected_) {
      // What joined it to the segment before was never synced.
      if (!may_cut(i)) {
        corrupt(fmt::format("segment {} does not follow {}",
                            segment_file_name(log_.segments[i].base_offset), expected_));
        return {};
      }
      cut_ = Cut{i, 0, BatchState::bad_offset, expected_};
      return {};
    }
    if (i > first) begin_segment(i);
    MQ_TRY_VOID(scan_segment(i));
    if (cut_ || log_.failure) return {};
  }
  return {};
}

Result<void> LogRecovery::scan_segment(std::size_t i) {
  const Segment& segment = log_.segments[i];
  MQ_TRY(const auto file,
         files_.open(path(segment_file_name(segment.base_offset)), OpenMode::read));
  // If the run before met an I/O error, its pages may be clean in the cache and not on the disk:
  // look at the disk. Dirty pages of a killed process stay.
  file->drop_cache(last_bytes_, segment.bytes - last_bytes_);
  BatchScanner::Start start{last_bytes_, expected_, last_epoch_};
  BatchScanner scanner(*file, start, segment.bytes, BatchScanner::Depth::whole);
  while (true) {
    MQ_TRY_VOID(scanner.next());
    if (scanner.at_end()) break;
    if (scanner.state() != BatchState::good) {
      stop_at(i, scanner);
      return {};
    }
    accept(scanner);
  }
  return {};
}

void LogRecovery::begin_segment(std::size_t i) {
  last_ = i;
  last_bytes_ = 0;
  log_.end.segment_base = log_.segments[i].base_offset;
  log_.end.position = 0;
  log_.end.segment_first_append_time_ms = -1;
  start_indexes(log_.end.segment_base);
  log_.active_index_from = 0;
}

/// What the journal has put back need not be read again.
void LogRecovery::take_restored() {
  if (MQ_MUTANT("bad_crc_cuts_the_log")) return;
  for (const RestoredBatch& batch : restored_) {
    if (batch.base < expected_) continue;
    const bool next = last_ + 1 < log_.segments.size() &&
                      log_.segments[last_ + 1].base_offset == batch.segment_base;
    if (batch.segment_base != log_.end.segment_base && next && batch.base == expected_)
      begin_segment(last_ + 1);
    if (batch.base != expected_ || batch.segment_base != log_.end.segment_base ||
        batch.position != last_bytes_)
      return;
    note(batch);
  }
}

void LogRecovery::note(const RestoredBatch& batch) {
  SyncPoint& end = log_.end;
  log_.active_index.note(batch.base, batch.position);
  log_.active_times.note(batch.append_time_ms, batch.base, batch.position);
  if (batch.leader_epoch > last_epoch_) {
    while (!log_.epoch_starts.empty() &&
           log_.epoch_starts.back().leader_epoch >= batch.leader_epoch)
      log_.epoch_starts.pop_back();
    log_.epoch_starts.push_back({batch.leader_epoch, batch.base});
  }
  expected_ = end.offset = batch.end;
  last_epoch_ = end.leader_epoch = batch.leader_epoch;
  last_bytes_ = end.position = batch.position + batch.bytes;
  end.append_time_ms = std::max(end.append_time_ms, batch.append_time_ms);
  if (end.segment_first_append_time_ms < 0) end.segment_first_append_time_ms = batch.append_time_ms;
}

void LogRecovery::accept(const BatchScanner& scanner) {
  const auto& batch = scanner.view();
  note({log_.end.segment_base, scanner.position(), batch.batch_bytes(), batch.base_offset(),
        batch.end_offset(), batch.leader_epoch(), batch.append_time_ms()});
  log_.bytes_scanned += batch.batch_bytes();
  disk_.note_recovery_read(batch.batch_bytes());
}

bool LogRecovery::may_cut(std::size_t i) const {
  if (spec_.journal && !MQ_MUTANT("bad_crc_cuts_the_log"))
    return expected_ >= spec_.journal->bound();
  // Without a checkpoint nobody knows what was synced; a roll syncs what it leaves behind.
  return !spec_.checkpoint_lost || i + 1 == log_.segments.size();
}

void LogRecovery::stop_at(std::size_t i, const BatchScanner& scanner) {
  const std::string name = segment_file_name(log_.segments[i].base_offset);
  if (scanner.state() == BatchState::unsupported)  // LOG-9
    return offline(StorageErrc::unsupported_format,
                   fmt::format("{} position {} holds a batch of a newer mq, which is kept", name,
                               scanner.position()));
  if (scanner.state() == BatchState::invalid)
    return corrupt(fmt::format("{} position {} holds a batch that breaks a rule of the format",
                               name, scanner.position()));
  if (!may_cut(i))
    return corrupt(
        fmt::format("{} position {}: {}", name, scanner.position(), state_name(scanner.state())));
  cut_ = Cut{i, scanner.position(), scanner.state(), expected_};
}

Result<void> LogRecovery::cut_torn_tail() {
  if (!cut_) return {};
  const Segment torn = log_.segments[cut_->segment];
  const std::uint64_t old_bytes = log_.segments.back().bytes;
  const std::string old_name = segment_file_name(log_.segments.back().base_offset);
  std::uint64_t dropped = 0;
  for (std::size_t i = cut_->segment; i < log_.segments.size(); ++i)
    dropped += log_.segments[i].bytes;
  // The new end is written last, so that a crash in between leaves something to cut again.
  while (log_.segments.size() > cut_->segment + 1) {
    MQ_TRY_VOID(files_.remove_file(path(segment_file_name(log_.segments.back().base_offset))));
    log_.segments.pop_back();
  }
  const bool whole = cut_->position == 0 && cut_->segment > last_;
  if (whole) {
    MQ_TRY_VOID(files_.remove_file(path(segment_file_name(torn.base_offset))));
    log_.segments.pop_back();
  } else {
    dropped -= cut_->position;
    MQ_TRY(const auto file,
           files_.open(path(segment_file_name(torn.base_offset)), OpenMode::write));
    MQ_TRY_VOID(file->truncate(cut_->position));
    MQ_TRY_VOID(sync_once(*file));
    log_.segments.back().bytes = cut_->position;
  }
  log_.bytes_cut = dropped;
  base::log_warning(
      "storage",
      "partition {} ({}): torn tail cut off ({}): old end at byte {} of {}, new end at "
      "byte {} of {}, offset {}; {} bytes dropped",
      spec_.id.text(), spec_.topic_name, state_name(cut_->why), old_bytes, old_name,
      log_.segments.back().bytes, segment_file_name(log_.segments.back().base_offset), cut_->end,
      dropped);
  return {};
}

/// REC-3: else a reader could see what the next power cut takes back.
Result<void> LogRecovery::sync_kept() {
  for (const auto& name : cache_files_) {
    // Made for bytes that may have changed.
    if (*parse_cache_file_name(name) < bound_.segment_base) continue;
    MQ_TRY_VOID(files_.remove_file(path(name)));
  }
  if (MQ_MUTANT("serve_unsynced_tail")) return {};
  for (std::size_t i = bound_segment_; i < log_.segments.size(); ++i) {
    MQ_TRY(const auto file,
           files_.open(path(segment_file_name(log_.segments[i].base_offset)), OpenMode::write));
    MQ_TRY_VOID(sync_once(*file));
  }
  return files_.sync_directory(spec_.directory);
}

void LogRecovery::finish() {
  // An epoch that the log does not reach any more has not begun.
  std::erase_if(log_.epoch_starts,
                [&](const EpochStart& start) { return start.start_offset >= log_.end.offset; });
  if (!spec_.journal) return;
  // PAR-4: but for the newest one, which holds though nothing may have been appended in it.
  // Wherever it began here, what the log holds was appended in earlier ones.
  const auto newest = spec_.journal->state.epoch_start.leader_epoch;
  if (newest > log_.end.leader_epoch) log_.epoch_starts.push_back({newest, log_.end.offset});
}

void LogRecovery::offline(StorageErrc errc, std::string problem) {
  log_.failure = errc;
  log_.problem = std::move(problem);
  log_.segments.clear();
  base::log_error("storage", "partition {} ({}) is offline: {}; nothing was cut", spec_.id.text(),
                  spec_.topic_name, log_.problem);
}

/// A full disk is refused by name, any other failure takes it offline.
Result<void> must(DiskState& disk, std::string_view operation, const std::string& path,
                  const Result<void>& done) {
  if (done) return {};
  if (done.error() == make_error_code(base::BaseErrc::no_space)) return StorageErrc::storage_full;
  disk.fail(operation, path, done.error());
  return StorageErrc::disk_failed;
}

/// From so many logs on one sync of the whole file system, with whatever else waits to be written
/// there, costs less than two syncs of each: every one of those waits for the device.
constexpr std::size_t kSyncWholeFrom = 32;

/// Something could not be made, which harms nothing that is there.
StorageErrc not_made(const Error& error) {
  return error == make_error_code(base::BaseErrc::no_space) ? StorageErrc::storage_full
                                                            : StorageErrc::io_failed;
}

/// Returns the first segment, open; nothing is synced yet. The topic file is for people: it is not
/// worth a sync.
Result<std::unique_ptr<base::File>> make_log_files(DiskState& disk, const RecoverySpec& spec) {
  auto& files = disk.files;
  const auto made = files.make_directory(spec.directory);
  if (!made && made.error() != make_error_code(base::BaseErrc::already_exists))
    return not_made(made.error());
  const auto topic = files.open(spec.directory + "/" + std::string(kTopicFile), OpenMode::create);
  if (!topic) return not_made(topic.error());
  const std::string name = spec.topic_name + "\n";
  const base::Bytes text = base::as_bytes(name);
  MQ_TRY_VOID(
      must(disk, "write", spec.directory, base::write_fully(**topic, std::span(&text, 1), 0)));
  auto segment = files.open(spec.directory + "/" + segment_file_name(spec.start), OpenMode::create);
  if (!segment) return not_made(segment.error());
  return segment;
}

Result<void> make_and_sync_each(DiskState& disk, std::span<const RecoverySpec> specs) {
  std::vector<std::unique_ptr<base::File>> segments;
  for (const auto& spec : specs) {
    MQ_TRY(auto segment, make_log_files(disk, spec));
    segments.push_back(std::move(segment));
  }
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const std::string& directory = specs[i].directory;
    MQ_TRY_VOID(must(disk, "fsync", directory, segments[i]->sync_all()));
    MQ_TRY_VOID(must(disk, "fsync", directory, disk.files.sync_directory(directory)));
  }
  return {};
}

/// One sync covers them all. The first segment stands for the file system: it was open when the
/// others were made.
Result<void> make_and_sync_whole(DiskState& disk, std::span<const RecoverySpec> specs) {
  std::unique_ptr<base::File> first;
  for (const auto& spec : specs) {
    MQ_TRY(auto segment, make_log_files(disk, spec));
    if (!first) first = std::move(segment);
  }
  return must(disk, "syncfs", disk.path, first->sync_file_system());
}

Result<RecoveredLog> create_one(DiskState& disk, const RecoverySpec& spec) {
  MQ_TRY(auto logs, create_log_files(disk, std::span(&spec, 1)));
  return std::move(logs.front());
}

}  // namespace

Result<std::vector<RecoveredLog>> create_log_files(DiskState& disk,
                                                   std::span<const RecoverySpec> specs) {
  const auto made = specs.size() < kSyncWholeFrom ? make_and_sync_each(disk, specs)
                                                  : make_and_sync_whole(disk, specs);
  if (!made) return made.error();
  MQ_TRY_VOID(must(disk, "fsync", disk.path, disk.files.sync_directory(disk.path)));
  std::vector<RecoveredLog> logs;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    RecoveredLog& log = logs.emplace_back();
    const Offset start = specs[i].start;
    log.segments.push_back({start, 0});
    log.log_start_offset = log.end.offset = log.end.segment_base = start;
    log.active_index = OffsetIndex(start, disk.config.index_stride_bytes);
    log.active_times = TimeIndex(start, disk.config.index_stride_bytes);
  }
  return logs;
}

Result<RecoveredLog> recover_log(DiskState& disk, const RecoverySpec& spec) {
  return LogRecovery(disk, spec).run();
}

}  // namespace mq::storage
