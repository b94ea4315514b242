#include <algorithm>

#include "base/log.h"
#include "base/mutants.h"
#include "storage/journal.h"

namespace mq::storage {
namespace {

using base::Bytes;
using model::Offset;
using model::PartitionId;

constexpr std::uint64_t kGroupBytesMax = std::uint64_t{4} << 20;
/// A group and a bypassing partition's share are small parts of a small file.
constexpr std::uint64_t kGroupShare = 4;
constexpr std::uint64_t kBypassShare = 8;
constexpr std::uint64_t kRecoveryPointEntryBytes = kJournalEntryHeaderBytes + 44;
constexpr std::uint64_t kSnapshotLogBytes = kJournalEntryHeaderBytes + 149;
constexpr std::uint64_t kSnapshotShare = 8;
/// A file grows in pieces of so many times the first one, since each costs the file system a
/// commit; where groups wait for a head they wait for one of one.
constexpr std::uint64_t kGrowPieces = 4;
constexpr auto kSlowGroups = std::chrono::milliseconds(4);
/// A file that is so much smaller than the largest is as good as none.
constexpr std::uint64_t kUsefulShare = 4;
constexpr auto kMakeFileAgain = std::chrono::seconds(10);
/// Moving the recovery points takes the head away from the journal, so no more than one part in so
/// many of the time is given to it while the journal may still grow, unless the kernel would write
/// the segments back by itself first, all at once: it does after 30 s.
constexpr int kRecoveryPointPace = 10;
constexpr auto kWriteBackAge = std::chrono::seconds(25);
/// Before it is known how long it takes.
constexpr base::Duration kFirstRest = std::chrono::seconds(20);
/// Asked for again if it took so much longer than the last time.
constexpr int kAskAgain = 3;
constexpr auto kAskAgainMin = std::chrono::seconds(60);
/// A new file has room for so much time of what is written, or is twice as large as the largest.
constexpr auto kFileLasts = std::chrono::seconds(8);

/// splitmix64: one of many numbers that a secret gives.
std::uint64_t mixed(std::uint64_t secret, std::uint64_t n) {
  std::uint64_t x = secret + n * 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

bool Journal::fail(std::string_view operation, const std::string& path, const Error& error) {
  disk_->fail(operation, path, error);
  return false;
}

JournalFileHeader Journal::header_of(std::uint64_t generation) const {
  return {owner_.cluster, owner_.broker, owner_.disk,
          owner_.journal, generation,    mixed(secret_, generation)};
}

std::uint64_t Journal::group_bytes_max() const {
  return std::min(kGroupBytesMax, live_.back()->bytes / kGroupShare);
}

std::uint64_t Journal::bypass_bytes() const {
  return std::min(disk_->config.journal_bypass_bytes, live_.back()->bytes / kBypassShare);
}

std::uint64_t Journal::snapshot_bytes() const {
  return journal_group_file_bytes((states_.size() + 1) * kSnapshotLogBytes);
}

/// Kept free at the end of a file for the recovery points by which an older file gets free.
std::uint64_t Journal::reserve_bytes() const {
  return journal_group_file_bytes(states_.size() * kRecoveryPointEntryBytes);
}

/// Writes the entry and keeps what a snapshot would say of its partition.
void Journal::encode(const Taken& taken) {
  const PartitionId& id = taken.id;
  auto& needs = live_.back()->needs;
  if (taken.item.needs >= Offset(0)) {
    Offset& need = needs.try_emplace(id, taken.item.needs).first->second;
    need = std::max(need, taken.item.needs);
  }
  if (const auto* append = std::get_if<JournalLog::Append>(&taken.item.what)) {
    JournalLogState& state = states_[id];
    builder_.add(id, JournalAppend{state.durable, append->segment_base, append->position,
                                   append->batch.bytes});
    return apply_append(state, state.durable, append->end.offset);
  }
  JournalContent content = std::get<JournalContent>(taken.item.what);
  if (auto* image = std::get_if<JournalImage>(&content)) image->bytes = taken.item.image;
  if (std::holds_alternative<JournalImage>(content) && MQ_MUTANT("block_image_left_out")) return;
  builder_.add(id, content);
  if (const auto* create = std::get_if<JournalCreate>(&content)) {
    states_[id] = created_log(*create);
  } else if (std::holds_alternative<JournalDelete>(content)) {
    states_.erase(id);
  } else if (const auto* cut = std::get_if<JournalCut>(&content)) {
    apply_cut(states_[id], *cut);
  } else if (const auto* restart = std::get_if<JournalRestart>(&content)) {
    apply_restart(states_[id], *restart);
  } else if (const auto* moved = std::get_if<JournalRecoveryPoint>(&content)) {
    apply_recovery_point(states_[id], moved->point);
  } else if (const auto* start = std::get_if<JournalLogStart>(&content)) {
    states_[id].log_start = std::max(states_[id].log_start, start->offset);
  } else if (const auto* epoch = std::get_if<JournalEpochStart>(&content)) {
    apply_epoch_start(states_[id], epoch->start);
  } else if (const auto* durability = std::get_if<JournalDurability>(&content)) {
    states_[id].durability = durability->durability;
    states_[id].disk_from = durability->disk_from;
  }
}

/// False: the disk has failed. Nothing but this group is under way.
bool Journal::commit(Group& group) {
  if (group.entries.empty()) return true;
  builder_.clear();
  for (const auto& taken : group.entries) encode(taken);
  JournalFile& file = *live_.back();
  const std::uint64_t bytes = builder_.file_bytes();
  const bool durable = builder_.empty() || write_group(file, position_);
  if (durable && !builder_.empty()) position_ += bytes;
  if (durable) settle_needs(group);
  tell(group, durable);
  return durable;
}

/// Writes what the builder holds and makes it durable.
bool Journal::write_group(JournalFile& file, std::uint64_t position) {
  auto header = next_group(file.header, group_number_, last_crc_);
  const Bytes bytes = builder_.finish(header);
  const auto written = base::write_fully(*file.file, std::span(&bytes, 1), position);
  if (!written) return fail("write", file.path, written.error());
  auto synced = file.file->sync_data();
  if (!synced && MQ_MUTANT("retry_fsync_after_eio")) synced = file.file->sync_data();
  if (!synced) return fail("fdatasync", file.path, synced.error());
  ++group_number_;
  last_crc_ = header.header_crc;
  groups_.add();
  bytes_.add(static_cast<std::int64_t>(bytes.size()));
  return true;
}

void Journal::tell(Group& group, bool durable) {
  for (auto& taken : group.entries) {
    const bool ahead = static_cast<bool>(taken.item.done);
    if (durable && !taken.item.image.empty() && taken.log && !ahead)
      flusher_->image_written(taken.log->sync_);
    if (taken.item.done) taken.item.done(durable);
  }
  if (!durable) return;
  // In the order of their entries: nothing follows addresses, so that a simulation repeats itself.
  std::vector<std::pair<base::Runtime*, std::vector<Advance>>> by_worker;
  for (auto& advance : group.advances) {
    if (const auto state = states_.find(advance.log->id_); state != states_.end()) {
      const Offset reached = std::min(advance.point.offset, state->second.end);
      state->second.durable = std::max(state->second.durable, reached);
    }
    base::Runtime* const worker = &advance.log->worker_;
    auto found = std::ranges::find(by_worker, worker, [](const auto& one) { return one.first; });
    if (found == by_worker.end()) found = by_worker.insert(found, {worker, {}});
    found->second.push_back(std::move(advance));
  }
  for (auto& [worker, advances] : by_worker) {
    worker->post([advances = std::move(advances)] {
      for (const auto& advance : advances) advance.log->advanced_(advance.point, advance.cuts);
    });
  }
}

/// A file whose entries all lie below recovery points of durable groups is free, once those before
/// it are.
void Journal::settle_needs(const Group& group) {
  for (const auto& taken : group.entries) {
    const auto* content = std::get_if<JournalContent>(&taken.item.what);
    if (!content) continue;
    const bool gone = std::holds_alternative<JournalDelete>(*content) ||
                      std::holds_alternative<JournalRestart>(*content);
    const auto* cut = std::get_if<JournalCut>(content);
    if (!gone && !cut && !std::holds_alternative<JournalRecoveryPoint>(*content)) continue;
    const auto state = states_.find(taken.id);
    for (const auto& file : live_) {
      const auto need = file->needs.find(taken.id);
      if (need == file->needs.end()) continue;
      if (cut) need->second = std::min(need->second, cut->end.offset);
      if (gone || state == states_.end() || state->second.recovery_point.offset >= need->second)
        file->needs.erase(need);
    }
  }
  free_files();
}

void Journal::free_files() {
  while (live_.size() > 1 && live_.front()->needs.empty()) {
    free_.push_back(std::move(live_.front()));
    live_.pop_front();
    stalled_said_ = false;
  }
  if (asked_for_ > 0 && live_.front()->header.generation >= asked_for_) {
    asked_for_ = 0;
    asked_took_ = disk_->home.now() - asked_at_;
  }
}

/// Sees to it that a group has room. When no file is free it waits for recovery points; then only
/// they are written, and only when they free one.
bool Journal::make_room(bool& stalled) {
  const auto left = live_.back()->bytes - position_;
  if (left >= reserve_bytes() + journal_group_file_bytes(group_bytes_max())) return true;
  if (room_comes()) {
    stalled = true;  // it is there in a moment
    return false;
  }
  if (switch_file()) return true;
  if (disk_->failed()) return false;
  ask_for_recovery_points(Hurry::yes);
  if (recovery_points_would_free() && left >= reserve_bytes()) {
    Group group = take(group_bytes_max(), true);
    if (!commit(group)) return false;
    if (switch_file()) return true;
    if (disk_->failed()) return false;
  }
  stalled = true;
  if (!stalled_said_) {
    stalled_said_ = true;
    disk_->counters.get("storage_journal_stalls_total").add();
  }
  return false;
}

bool Journal::recovery_points_would_free() const {
  std::lock_guard lock(mutex_);
  for (const auto& [id, need] : live_.front()->needs) {
    const auto found = logs_.find(id);
    const auto log = found == logs_.end() ? nullptr : found->second.lock();
    if (!log || !log->recovery_point_ || log->recovery_point_->offset < need) return false;
  }
  return true;
}

/// So that the files before the newest get free. In the order of the partitions, in which their
/// segments are likely to lie on the disk.
void Journal::ask_for_recovery_points(Hurry hurry) {
  std::map<PartitionId, std::pair<std::shared_ptr<LogSync>, SyncPoint>> wanted;
  asked_for_ = live_.back()->header.generation;
  asked_at_ = disk_->home.now();
  {
    std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i + 1 < live_.size(); ++i) {
      for (const auto& [id, need] : live_[i]->needs) {
        const auto found = logs_.find(id);
        const auto log = found == logs_.end() ? nullptr : found->second.lock();
        if (!log || log->closed_) continue;
        if (log->recovery_point_ && log->recovery_point_->offset >= need) continue;
        wanted.try_emplace(id, log->sync_, log->end_);
      }
    }
  }
  Flusher::Wanted in_order;
  for (auto& [id, one] : wanted) in_order.push_back(std::move(one));
  if (hurry == Hurry::yes) {
    flusher_->request(in_order);
  } else {
    flusher_->request_without_hurry(in_order);
  }
}

bool Journal::recovery_points_due() const {
  if (live_.size() < 2) return false;
  const base::Duration under_way = std::max<base::Duration>(kAskAgainMin, kAskAgain * asked_took_);
  const base::Duration rest =
      asked_took_ == base::Duration(0)
          ? kFirstRest
          : std::min<base::Duration>(std::max<base::Duration>(kWriteBackAge, asked_took_),
                                     kRecoveryPointPace * asked_took_);
  return disk_->home.now() >= asked_at_ + (asked_for_ > 0 ? under_way : rest);
}

std::unique_ptr<JournalFile> Journal::take_free(std::uint64_t bytes_min) {
  const auto largest =
      std::ranges::max_element(free_, {}, [](const auto& file) { return file->bytes; });
  if (largest == free_.end() || (*largest)->bytes < bytes_min) return nullptr;
  auto taken = std::move(*largest);
  free_.erase(largest);
  return taken;
}

bool Journal::write_header(JournalFile& file) {
  const auto written = write_journal_header(*file.file, file.header);
  return written || fail("write", file.path, written.error());
}

/// Files that got free together and are older than the one that is taken: until the next snapshot
/// is durable the last one may still name them, and replay would miss a file between them.
bool Journal::retire_before(const JournalFile& taken) {
  std::ranges::sort(free_, {}, [](const auto& file) { return file->header.generation; });
  for (const auto& file : free_) {
    const auto generation = file->header.generation;
    if (generation == 0 || generation > taken.header.generation) continue;
    file->header = header_of(0);
    if (!write_header(*file)) return false;
  }
  return true;
}

/// Goes on in a free file, which begins with all that its predecessors said: they may be given up.
bool Journal::switch_file(bool alone) {
  auto file = take_free(usable_bytes());
  if (!file) {
    prepare_file();
    return false;
  }
  if (!retire_before(*file)) return false;
  file->header = header_of(++generation_);
  if (!write_header(*file)) return false;
  build_snapshot(alone || live_.empty() ? generation_ : live_.front()->header.generation);
  const std::uint64_t bytes = builder_.file_bytes();
  if (!write_group(*file, kJournalBlockBytes)) return false;
  note_fill_rate();
  position_ = kJournalBlockBytes + bytes;
  disk_->counters.get("storage_journal_files_begun_total").add();
  file->needs.clear();
  live_.push_back(std::move(file));
  looked_ahead_ = false;
  file_began_ = disk_->home.now();
  return true;
}

/// Of the file that is full now.
void Journal::note_fill_rate() {
  if (live_.empty()) return;
  const double took = std::chrono::duration<double>(disk_->home.now() - file_began_).count();
  if (took > 0) bytes_per_second_ = static_cast<double>(position_) / took;
}

void Journal::build_snapshot(std::uint64_t first_generation) {
  builder_.clear();
  JournalSnapshot snapshot;
  snapshot.first_generation = first_generation;
  snapshot.disk = disk_state();
  const bool left_out = MQ_MUTANT("journal_file_without_snapshot") && !live_.empty();
  snapshot.logs = left_out ? 0 : static_cast<std::uint32_t>(states_.size());
  builder_.add({}, snapshot);
  if (left_out) return;
  for (const auto& [id, state] : states_) builder_.add(id, JournalSnapshotLog{state});
}

/// A file is of use only with room for much more than its snapshot.
std::uint64_t Journal::usable_bytes() const {
  return kJournalBlockBytes + snapshot_bytes() * kSnapshotShare;
}

/// One that lasts for a while.
bool Journal::has_useful_file() const {
  const auto bytes_min = std::max(usable_bytes(), largest_bytes_ / kUsefulShare);
  return std::ranges::any_of(free_, [&](const auto& file) {
    return file->bytes >= (file->growing ? usable_bytes() : bytes_min);
  });
}

/// Where a file is being made that is better than to go on in a small one that happens to be free.
bool Journal::room_comes() const {
  if (has_useful_file()) return false;
  std::lock_guard lock(mutex_);
  return live_.back()->growing || making_file_;
}

/// When the newest file is half full: the next one must be free by its end. Either the recovery
/// points make it so, or, while they are not due yet, one more is made.
void Journal::look_ahead() {
  if (recovery_points_due()) ask_for_recovery_points(Hurry::no);
  const JournalFile& newest = *live_.back();
  const auto lasting = static_cast<std::uint64_t>(
      bytes_per_second_ * std::chrono::duration<double>(kFileLasts).count());
  const auto left = newest.bytes - std::min(newest.bytes, position_);
  if (looked_ahead_ || newest.growing || left > std::max(newest.bytes / 2, lasting)) return;
  looked_ahead_ = true;
  const bool comes = has_useful_file() || prepare_file();
  if (!comes && live_.size() > 1 && asked_for_ == 0) ask_for_recovery_points(Hurry::no);
}

/// The smallest file that takes as much of one partition as any.
std::uint64_t Journal::roomy_bytes() const {
  return disk_->config.journal_bypass_bytes * kBypassShare;
}

/// A partition went past the file only because that is small. A sync of its segment costs a disk
/// with a head several turns, so a larger file is made, and gone on with as soon as it is there.
void Journal::make_roomy() {
  if (!cramped_) return;
  const auto now_bytes = live_.back()->bytes;
  const auto wanted = std::min(roomy_bytes(), disk_->config.journal_file_bytes_max);
  const bool larger_is_free =
      std::ranges::any_of(free_, [&](const auto& file) { return file->bytes > now_bytes; });
  if (larger_is_free && now_bytes < wanted) switch_file();
  if (live_.back()->bytes >= wanted)
    cramped_ = false;
  else
    prepare_file();
}

/// Has one more file made on a disk thread. False: there are as many as there may be, or there was
/// no space for one lately.
bool Journal::prepare_file() {
  const std::uint64_t bytes_min = usable_bytes();
  const auto& config = disk_->config;
  const bool no_file_fits = largest_bytes_ < bytes_min;
  const auto now = disk_->home.now();
  const std::uint32_t number = next_number_;
  const double filled = std::chrono::duration<double>(now - file_began_).count();
  const double lasting = std::chrono::duration<double>(kFileLasts).count();
  const double bytes_max = static_cast<double>(config.journal_file_bytes_max);
  double rate = bytes_per_second_;
  if (rate == 0 && filled > 0) rate = static_cast<double>(position_) / filled;
  const double wanted = rate * lasting;
  const auto by_rate = static_cast<std::uint64_t>(std::min(wanted, bytes_max));
  const std::uint64_t bytes =
      std::max(std::min(std::max({largest_bytes_ * 2, by_rate, cramped_ ? roomy_bytes() : 0}),
                        config.journal_file_bytes_max),
               bytes_min) /
      kJournalBlockBytes * kJournalBlockBytes;
  // One that is there already and small is made larger rather than to have one more of them.
  const auto small = std::ranges::find_if(
      free_, [&](const auto& file) { return !file->growing && file->bytes * 2 <= bytes; });
  std::shared_ptr<base::FileLock> disk_lock;
  {
    std::lock_guard lock(mutex_);
    const auto count = live_.size() + free_.size() + new_files_.size();
    if (making_file_) return true;
    if (now < make_file_after_) return false;
    if (small == free_.end() && count >= config.journal_files_max && !no_file_fits) return false;
    making_file_ = true;
    make_file_after_ = now + kMakeFileAgain;
    disk_lock = lock_;
  }
  if (small != free_.end()) {
    (*small)->growing = true;
    grow_later({(*small)->file, (*small)->path, (*small)->number, (*small)->bytes, bytes},
               std::move(disk_lock));
    return true;
  }
  ++next_number_;
  const auto first = std::min(std::max(config.journal_grow_bytes, bytes_min), bytes) /
                     kJournalBlockBytes * kJournalBlockBytes;
  disk_->executor.submit(
      [self = shared_from_this(), number, first, bytes, disk_lock = std::move(disk_lock)] {
        self->begin_file(number, first, bytes, disk_lock);
      });
  return true;
}

/// On a disk thread. What is made from here on has no part in any round before take_new_files() and
/// take_growth(); no other process may have the disk meanwhile.
void Journal::begin_file(std::uint32_t number, std::uint64_t first, std::uint64_t bytes,
                         const std::shared_ptr<base::FileLock>& disk_lock) {
  auto made = make_file(number, first);
  JournalGrowth growth;
  {
    std::lock_guard lock(mutex_);
    making_file_ = made && first < bytes;
    if (!made) return;  // on a full disk the old ones must do
    make_file_after_ = {};
    growth = {(*made)->file, (*made)->path, number, first, bytes};
    (*made)->growing = making_file_;
    new_files_.push_back(*std::move(made));
    wake_locked();
  }
  if (!growth.ended()) grow_later(std::move(growth), disk_lock);
}

/// Piece by piece, so that the disk's other work comes between.
void Journal::grow_later(JournalGrowth growth, std::shared_ptr<base::FileLock> disk_lock) {
  disk_->writers_turn().submit(
      [self = shared_from_this(), growth, disk_lock = std::move(disk_lock)]() mutable {
        self->grow(growth);
        if (!growth.ended()) self->grow_later(std::move(growth), std::move(disk_lock));
      });
}

void Journal::grow(JournalGrowth& growth) {
  bool wanted = false;
  std::uint64_t pieces = 1;
  {
    std::lock_guard lock(mutex_);
    wanted = !ended_ && !conclude_ && !disk_->failed();
    if (group_time_ < kSlowGroups) pieces = kGrowPieces;
  }
  auto grown = wanted ? grow_journal_file(growth, pieces * disk_->config.journal_grow_bytes)
                      : Result<void>(make_error_code(base::BaseErrc::no_space));
  if (!grown) growth.bytes_wanted = growth.bytes;
  if (!grown && grown.error() != make_error_code(base::BaseErrc::no_space))
    fail("write", growth.path, grown.error());
  std::lock_guard lock(mutex_);
  if (growth.ended()) {
    making_file_ = false;
    if (grown) make_file_after_ = {};
  }
  grown_.push_back(growth);
  wake_locked();
}

void Journal::take_growth() {
  std::vector<JournalGrowth> grown;
  {
    std::lock_guard lock(mutex_);
    grown.swap(grown_);
  }
  for (const auto& growth : grown) {
    const auto take = [&](const std::unique_ptr<JournalFile>& file) {
      if (file->number != growth.number) return;
      file->bytes = growth.bytes;
      file->growing = !growth.ended();
    };
    largest_bytes_ = std::max(largest_bytes_, growth.bytes);
    std::ranges::for_each(live_, take);
    std::ranges::for_each(free_, take);
  }
}

void Journal::take_new_files() {
  std::lock_guard lock(mutex_);
  news_ = false;
  for (auto& file : new_files_) {
    largest_bytes_ = std::max(largest_bytes_, file->bytes);
    free_.push_back(std::move(file));
    ++disk_state_.files;
    loose_.push_back({{}, nullptr, {JournalContent(JournalDiskChange{disk_state_})}});
  }
  new_files_.clear();
}

}  // namespace mq::storage
