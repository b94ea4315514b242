#include "storage/journal_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/mutants.h"
#include "base/strings.h"
#include "model/record_batch.h"
#include "storage/storage_format.h"

namespace mq::storage {
namespace {

using base::Bytes;
using model::Offset;
using model::PartitionId;

constexpr std::size_t kNameDigits = 4;

/// Builds a JournalReplay out of one file after the other, oldest generation first.
class Replayer {
 public:
  Replayer(base::FileSystem& files, const JournalOwner& owner,
           std::function<void(std::uint64_t)> read, std::uint64_t last_group)
      : files_(files), owner_(owner), read_(std::move(read)), end_group_(last_group) {}

  Result<void> find(const std::string& directory);
  Result<void> run();
  JournalReplay take() { return std::move(replay_); }

 private:
  Result<void> look_at(const std::string& path);
  Result<void> take_end();
  void apply_entries(const JournalFileReader& reader, const std::string& path);
  Result<void> choose_first();
  Result<std::optional<std::uint64_t>> first_of(const JournalFileFound& found);
  Result<void> look_for_newer_groups(const JournalFileFound& found);
  Result<void> walk(const JournalFileFound& found);
  void check_chain(const JournalGroupHeader& group, const JournalFileReader& reader,
                   const std::string& path);
  void apply(const JournalEntry& entry, std::uint64_t at);
  void take_snapshot(const PartitionId& id, const JournalLogState& state);
  void take_append(const PartitionId& id, const JournalAppend& append, std::uint64_t at);
  void take_image(ReplayedLog& log, const JournalImage& image, std::uint64_t at);
  void take_cut(ReplayedLog& log, const JournalCut& cut);
  static void take_restart(ReplayedLog& log, const JournalRestart& restart);
  void take_recovery_point(ReplayedLog& log, const SyncPoint& point);
  void damage(std::string problem);

  base::FileSystem& files_;
  const JournalOwner& owner_;
  const std::function<void(std::uint64_t)> read_;
  const std::uint64_t end_group_;
  bool taken_ = false;  // the end of a clean stop was found
  JournalReplay replay_;
  std::vector<const JournalFileFound*> live_;  // by generation
  bool chained_ = false;                       // the group before is known
  Bytes body_;                                 // of the group being applied
  std::uint64_t body_at_ = 0;
};

void Replayer::damage(std::string problem) {
  replay_.damaged = true;
  if (replay_.problem.empty()) replay_.problem = std::move(problem);
}

Result<void> Replayer::find(const std::string& directory) {
  const auto entries = files_.list_directory(directory);
  if (!entries && entries.error() != make_error_code(base::BaseErrc::not_found))
    return entries.error();
  if (entries) {
    for (const auto& entry : *entries) {
      if (entry.is_directory || !parse_journal_file_name(entry.name)) continue;
      MQ_TRY_VOID(look_at(directory + "/" + entry.name));
    }
  }
  if (replay_.found.empty()) {
    replay_.lost = true;
    replay_.problem = fmt::format("there is no journal in {}", directory);
  }
  return {};
}

Result<void> Replayer::look_at(const std::string& path) {
  MQ_TRY(const auto file, files_.open(path, base::OpenMode::read));
  JournalFileFound found;
  found.path = path;
  MQ_TRY(found.bytes, file->size());
  // REC-5: what a failed sync left in the cache may not be on the disk. Dirty pages stay.
  file->drop_cache(0, found.bytes);
  std::vector<std::byte> block(kJournalBlockBytes);
  MQ_TRY(const auto got, file->read_at(block, 0));
  replay_.bytes_read += got;
  auto header = decode_journal_header(Bytes(block).first(got));
  if (!header && header.error() == make_error_code(StorageErrc::unknown_format_version))
    return header.error();
  if (header) {
    const bool ours = header->cluster == owner_.cluster && header->broker == owner_.broker &&
                      header->disk == owner_.disk && header->journal == owner_.journal;
    if (ours) {
      found.header = *header;
      replay_.newest_generation = std::max(replay_.newest_generation, header->generation);
    } else if (owner_.journal.is_zero() && header->disk == owner_.disk) {
      // Made by a start that a crash broke off before the disk knew its journal: as if unfinished.
    } else {
      found.foreign = true;
      damage(fmt::format("{} belongs to another disk", path));
    }
  }
  replay_.found.push_back(std::move(found));
  return {};
}

Result<void> Replayer::run() {
  if (replay_.lost) return {};
  for (const auto& found : replay_.found) {
    if (found.header && found.header->generation > 0) live_.push_back(&found);
  }
  for (const auto& found : replay_.found) {
    if (found.header || found.foreign) continue;
    MQ_TRY_VOID(look_for_newer_groups(found));
  }
  if (live_.empty()) {
    replay_.lost = true;
    if (replay_.problem.empty()) replay_.problem = "no file of the journal can be read";
    return {};
  }
  std::ranges::sort(live_, {}, [](const auto* found) { return found->header->generation; });
  MQ_TRY_VOID(take_end());
  if (taken_) return {};
  MQ_TRY_VOID(choose_first());
  std::uint64_t generation_before = 0;
  for (const auto* found : live_) {
    const auto generation = found->header->generation;
    if (generation < replay_.first_generation && !MQ_MUTANT("old_journal_generation")) continue;
    if (generation_before > 0 && generation != generation_before + 1)
      damage(fmt::format("the journal file before {} is missing", found->path));
    generation_before = generation;
    MQ_TRY_VOID(walk(*found));
  }
  if (replay_.found.size() < replay_.disk.files)
    damage(fmt::format("the journal had {} files, {} are there", replay_.disk.files,
                       replay_.found.size()));
  for (const auto& [id, log] : replay_.logs) {
    if (log.gap()) damage(fmt::format("records of {} are missing in the journal", id.text()));
  }
  return {};
}

/// After a clean stop the newest file begins with all that there is to know.
Result<void> Replayer::take_end() {
  if (end_group_ == 0 || replay_.damaged) return {};
  const JournalFileFound& found = *live_.back();
  MQ_TRY(const auto file, files_.open(found.path, base::OpenMode::read));
  JournalFileReader reader(*file, *found.header, found.bytes, kJournalBlockBytes);
  MQ_TRY_VOID(reader.next());
  if (reader.at_end() || reader.position() != kJournalBlockBytes) return {};
  if (reader.group().number != end_group_) return {};
  JournalEntryReader entries(reader.body(), reader.group().entries);
  const auto entry = entries.next();
  if (!entry || !*entry) return {};
  const auto* snapshot = std::get_if<JournalSnapshot>(&(*entry)->content);
  if (snapshot == nullptr || snapshot->first_generation != found.header->generation) return {};
  replay_.first_generation = snapshot->first_generation;
  replay_.bytes_read += reader.bytes_read();
  if (read_) read_(reader.bytes_read());
  check_chain(reader.group(), reader, found.path);
  apply_entries(reader, found.path);
  taken_ = replay_.found.size() >= replay_.disk.files;
  return {};
}

/// The newest snapshot says where replay begins.
Result<void> Replayer::choose_first() {
  for (auto at = live_.rbegin(); at != live_.rend(); ++at) {
    MQ_TRY(const auto first, first_of(**at));
    if (!first) continue;
    replay_.first_generation = *first;
    return {};
  }
  replay_.lost = true;
  replay_.problem = "no file of the journal begins with a whole snapshot";
  replay_.first_generation = live_.front()->header->generation;
  return {};
}

Result<std::optional<std::uint64_t>> Replayer::first_of(const JournalFileFound& found) {
  std::optional<std::uint64_t> first;
  MQ_TRY(const auto file, files_.open(found.path, base::OpenMode::read));
  JournalFileReader reader(*file, *found.header, found.bytes);
  MQ_TRY_VOID(reader.next());
  if (reader.at_end() || reader.position() != kJournalBlockBytes) return first;
  JournalEntryReader entries(reader.body(), reader.group().entries);
  const auto entry = entries.next();
  if (!entry || !*entry) return first;
  if (const auto* snapshot = std::get_if<JournalSnapshot>(&(*entry)->content))
    first = snapshot->first_generation;
  return first;
}

/// A header is synced before the first group of that use: groups without a header mean that it was
/// damaged later.
Result<void> Replayer::look_for_newer_groups(const JournalFileFound& found) {
  MQ_TRY(const auto file, files_.open(found.path, base::OpenMode::read));
  std::vector<std::byte> block(kJournalBlockBytes);
  for (std::uint64_t at = kJournalBlockBytes; at < found.bytes; at += kJournalBlockBytes) {
    MQ_TRY(const auto got, file->read_at(block, at));
    replay_.bytes_read += got;
    const auto group = decode_journal_group_header(Bytes(block).first(got));
    if (!group || group->generation <= replay_.newest_generation) continue;
    replay_.newest_generation = group->generation;
    damage(fmt::format("the header of {} is damaged", found.path));
  }
  return {};
}

Result<void> Replayer::walk(const JournalFileFound& found) {
  MQ_TRY(auto opened, files_.open(found.path, base::OpenMode::read));
  replay_.files.push_back(std::move(opened));
  JournalFileReader reader(*replay_.files.back(), *found.header, found.bytes);
  std::uint64_t told = 0;
  while (true) {
    MQ_TRY_VOID(reader.next());
    if (read_) read_(reader.bytes_read() - told);
    told = reader.bytes_read();
    if (reader.at_end()) break;
    check_chain(reader.group(), reader, found.path);
    apply_entries(reader, found.path);
  }
  replay_.bytes_read += reader.bytes_read();
  return {};
}

void Replayer::apply_entries(const JournalFileReader& reader, const std::string& path) {
  body_ = reader.body();
  body_at_ = reader.position() + kJournalGroupHeaderBytes;
  JournalEntryReader entries(body_, reader.group().entries);
  while (true) {
    const auto entry = entries.next();
    if (!entry) damage(fmt::format("{} at {} holds an unknown entry", path, body_at_));
    if (!entry || !*entry) return;
    apply(**entry, body_at_);
  }
}

/// A good group that does not follow the one before means that groups between were lost, which were
/// durable: only one is ever under way.
void Replayer::check_chain(const JournalGroupHeader& group, const JournalFileReader& reader,
                           const std::string& path) {
  const bool follows = !chained_ || (group.number == replay_.last_group + 1 &&
                                     group.previous_crc == replay_.last_crc);
  if (!follows || reader.skipped())
    damage(fmt::format("a group before byte {} of {} is damaged", reader.position(), path));
  chained_ = true;
  replay_.last_group = group.number;
  replay_.last_crc = group.header_crc;
}

void Replayer::apply(const JournalEntry& entry, std::uint64_t body_at) {
  const auto& content = entry.content;
  const auto at = [&](Bytes bytes) {
    return body_at + static_cast<std::uint64_t>(bytes.data() - body_.data());
  };
  if (const auto* snapshot = std::get_if<JournalSnapshot>(&content)) {
    replay_.disk = snapshot->disk;
  } else if (const auto* change = std::get_if<JournalDiskChange>(&content)) {
    replay_.disk = change->disk;
  } else if (const auto* log = std::get_if<JournalSnapshotLog>(&content)) {
    take_snapshot(entry.id, log->state);
  } else if (const auto* create = std::get_if<JournalCreate>(&content)) {
    replay_.deleted.erase(entry.id);
    replay_.logs[entry.id] = {created_log(*create), {}, Offset(0), {}};
  } else if (std::holds_alternative<JournalDelete>(content)) {
    replay_.logs.erase(entry.id);
    replay_.deleted.insert(entry.id);
  } else if (const auto* append = std::get_if<JournalAppend>(&content)) {
    take_append(entry.id, *append, at(append->batch));
  } else {
    const auto found = replay_.logs.find(entry.id);
    // Damage before this place may have taken what made it known; the snapshot will tell.
    if (found == replay_.logs.end()) return;
    ReplayedLog& known = found->second;
    if (const auto* image = std::get_if<JournalImage>(&content)) {
      take_image(known, *image, at(image->bytes));
    } else if (const auto* cut = std::get_if<JournalCut>(&content)) {
      if (!MQ_MUTANT("journal_replay_without_cuts")) take_cut(known, *cut);
    } else if (const auto* restart = std::get_if<JournalRestart>(&content)) {
      if (!MQ_MUTANT("journal_replay_without_restarts")) take_restart(known, *restart);
    } else if (const auto* start = std::get_if<JournalLogStart>(&content)) {
      known.state.log_start = std::max(known.state.log_start, start->offset);
    } else if (const auto* epoch = std::get_if<JournalEpochStart>(&content)) {
      apply_epoch_start(known.state, epoch->start);
    } else if (const auto* moved = std::get_if<JournalRecoveryPoint>(&content)) {
      take_recovery_point(known, moved->point);
    } else if (const auto* durability = std::get_if<JournalDurability>(&content)) {
      known.state.durability = durability->durability;
      known.state.disk_from = durability->disk_from;
    }
  }
}

void Replayer::take_snapshot(const PartitionId& id, const JournalLogState& state) {
  replay_.deleted.erase(id);
  const auto [known, fresh] = replay_.logs.try_emplace(id);
  ReplayedLog& log = known->second;
  const bool whole = !fresh && log.state.end == state.end;
  log.state = state;
  // What lies below the end was in groups that are lost, or in files that are out of use.
  if (!whole) log.covered_from = state.end;
  take_recovery_point(log, state.recovery_point);
  log.state = state;
  log.lowest_cut = state.cut;
}

void Replayer::take_append(const PartitionId& id, const JournalAppend& append, std::uint64_t at) {
  const auto [known, fresh] = replay_.logs.try_emplace(id);
  ReplayedLog& log = known->second;
  const auto view = model::RecordBatchView::parse_header(append.batch);
  if (!view || view->batch_bytes() != append.batch.size())
    return damage(fmt::format("an entry of {} holds no record batch", id.text()));
  const Offset base = view->base_offset();
  if (fresh) log.covered_from = log.state.end = base;
  JournalLogState& state = log.state;
  if (view->end_offset() <= state.recovery_point.offset) return;
  if (base < state.end) {
    // LOG-1: a log that goes on below its end has been cut before, by whoever leads in that epoch.
    JournalCut cut;
    cut.epoch = view->leader_epoch();
    cut.end = {base, append.segment_base, append.position, cut.epoch, -1, -1};
    const auto pending = state.cut;
    take_cut(log, cut);
    state.cut = pending;
  } else if (base > state.end) {
    log.covered_from = base;
  }
  apply_append(state, append.durable, view->end_offset());
  JournalWrite write;
  write.segment_base = append.segment_base;
  write.position = append.position;
  write.bytes = static_cast<std::uint32_t>(append.batch.size());
  write.file = static_cast<std::uint32_t>(replay_.files.size() - 1);
  write.at = at;
  write.base = base;
  write.end = view->end_offset();
  write.leader_epoch = view->leader_epoch();
  log.writes.push_back(write);
}

void Replayer::take_image(ReplayedLog& log, const JournalImage& image, std::uint64_t at) {
  JournalWrite write;
  write.segment_base = image.segment_base;
  write.position = image.position;
  write.bytes = static_cast<std::uint32_t>(image.bytes.size());
  write.file = static_cast<std::uint32_t>(replay_.files.size() - 1);
  write.at = at;
  write.base = write.end = Offset(-1);
  log.writes.push_back(write);
}

void Replayer::take_cut(ReplayedLog& log, const JournalCut& cut) {
  apply_cut(log.state, cut);
  log.covered_from = std::min(log.covered_from, cut.end.offset);
  if (!log.lowest_cut || cut.end.offset < log.lowest_cut->offset) log.lowest_cut = cut.end;
  std::erase_if(log.writes, [&](JournalWrite& write) {
    if (write.base >= Offset(0)) return write.end > cut.end.offset;
    if (write.segment_base != cut.end.segment_base)
      return write.segment_base > cut.end.segment_base;
    if (write.position >= cut.end.position) return true;
    const auto room = cut.end.position - write.position;
    write.bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(write.bytes, room));
    return false;
  });
}

void Replayer::take_restart(ReplayedLog& log, const JournalRestart& restart) {
  apply_restart(log.state, restart);
  log.writes.clear();
  log.covered_from = restart.start.offset;
  log.lowest_cut = restart.start;
}

/// Blocks below the recovery point are not written any more; the block that it lies in may be. A
/// cut before it is done, in the checkpoint too.
void Replayer::take_recovery_point(ReplayedLog& log, const SyncPoint& point) {
  apply_recovery_point(log.state, point);
  log.lowest_cut.reset();
  const std::uint64_t from = journal_block_of(point.position);
  std::erase_if(log.writes, [&](const JournalWrite& write) {
    return write.segment_base < point.segment_base ||
           (write.segment_base == point.segment_base && write.position + write.bytes <= from);
  });
}

}  // namespace

JournalFileReader::JournalFileReader(base::File& file, const JournalFileHeader& header,
                                     std::uint64_t file_bytes, std::size_t stride_bytes)
    : file_(file), header_(header), file_bytes_(file_bytes), stride_bytes_(stride_bytes) {}

Result<Bytes> JournalFileReader::load(std::uint64_t position, std::size_t bytes) {
  const auto left = file_bytes_ > position ? file_bytes_ - position : 0;
  bytes = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, left));
  if (position < loaded_from_ || position + bytes > loaded_from_ + loaded_) {
    const auto stride =
        static_cast<std::size_t>(std::min<std::uint64_t>(std::max(bytes, stride_bytes_), left));
    if (buffer_.data() == nullptr || buffer_.capacity() < stride)
      buffer_ = base::BufferPool::shared().take(std::max<std::size_t>(stride, 1));
    MQ_TRY(loaded_, file_.read_at(buffer_.bytes().first(stride), position));
    loaded_from_ = position;
    bytes_read_ += loaded_;
    bytes = std::min(bytes, loaded_);
  }
  return Bytes(buffer_.bytes()).subspan(static_cast<std::size_t>(position - loaded_from_), bytes);
}

Result<void> JournalFileReader::next() {
  skipped_ = false;
  for (; next_ < file_bytes_; next_ += kJournalBlockBytes) {
    MQ_TRY_VOID(try_group());
    if (good_) {
      next_ = position_ + journal_group_file_bytes(group_.body_bytes);
      return {};
    }
    skipped_ = true;
  }
  at_end_ = true;
  return {};
}

Result<void> JournalFileReader::try_group() {
  good_ = false;
  MQ_TRY(const auto head, load(next_, kJournalGroupHeaderBytes));
  const auto group = decode_journal_group_header(head);
  if (!group || group->body_bytes > file_bytes_ - next_ - kJournalGroupHeaderBytes) return {};
  const bool of_this_use = group->generation == header_.generation && group->nonce == header_.nonce;
  if (!of_this_use && !MQ_MUTANT("old_journal_generation")) return {};
  MQ_TRY(const auto whole, load(next_, kJournalGroupHeaderBytes + group->body_bytes));
  if (whole.size() < kJournalGroupHeaderBytes) return {};
  group_ = *group;
  body_ = whole.subspan(kJournalGroupHeaderBytes);
  position_ = next_;
  good_ = journal_body_holds(group_, body_);
  return {};
}

Result<JournalReplay> replay_journal(base::FileSystem& files, const std::string& directory,
                                     const JournalOwner& owner,
                                     std::function<void(std::uint64_t)> read,
                                     std::uint64_t last_group) {
  Replayer replayer(files, owner, std::move(read), last_group);
  MQ_TRY_VOID(replayer.find(directory));
  MQ_TRY_VOID(replayer.run());
  return replayer.take();
}

std::string journal_file_name(std::uint32_t number) {
  return fmt::format("{:04}{}", number, kJournalSuffix);
}

std::optional<std::uint32_t> parse_journal_file_name(std::string_view name) {
  if (name.size() != kNameDigits + kJournalSuffix.size() || !name.ends_with(kJournalSuffix))
    return std::nullopt;
  const auto number = base::parse_unsigned(name.substr(0, kNameDigits));
  if (!number) return std::nullopt;
  return static_cast<std::uint32_t>(*number);
}

}  // namespace mq::storage
