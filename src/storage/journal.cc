#include "storage/journal.h"

#include <algorithm>

#include "base/mutants.h"

namespace mq::storage {
namespace {

using model::Offset;
using model::PartitionId;

/// Waiting for more entries pays only where a group takes long: on a turning disk, where the next
/// place to write comes round no sooner.
constexpr auto kSlowGroup = std::chrono::milliseconds(1);
constexpr auto kWindowMax = std::chrono::milliseconds(4);
constexpr int kWindowShare = 2;
/// What an entry takes beside its own bytes, generously.
constexpr std::uint64_t kEntryOverhead = 128;

/// Where the log ends behind this entry, if it changes that.
const SyncPoint* cut_end(const JournalContent* content) {
  if (content == nullptr) return nullptr;
  if (const auto* cut = std::get_if<JournalCut>(content)) return &cut->end;
  if (const auto* restart = std::get_if<JournalRestart>(content)) return &restart->start;
  return nullptr;
}

}  // namespace

Journal::Journal(std::shared_ptr<DiskState> disk, std::shared_ptr<Flusher> flusher)
    : disk_(std::move(disk)),
      flusher_(std::move(flusher)),
      groups_(disk_->counters.get("storage_journal_groups_total")),
      bytes_(disk_->counters.get("storage_journal_bytes_total")) {}

void Journal::attach(const std::shared_ptr<JournalLog>& log) {
  std::lock_guard lock(mutex_);
  logs_[log->id_] = log;
}

void Journal::append(const std::shared_ptr<JournalLog>& log, Batch batch) {
  std::lock_guard lock(mutex_);
  if (log->closed_) return;
  JournalLog::Append append;
  append.base = batch.base;
  append.segment_base = batch.segment_base;
  append.position = batch.position;
  append.end = batch.end;
  append.batch = std::move(batch.bytes);
  log->append_bytes_ += append.batch.bytes.size();
  log->end_ = batch.end;
  Item item{std::move(append)};
  item.needs = batch.end.offset;
  log->items_.push_back(std::move(item));
  if (!log->bypassing_) queue_locked(log);
}

void Journal::image(const std::shared_ptr<JournalLog>& log, std::uint64_t position,
                    std::vector<std::byte> bytes, const SyncPoint& end) {
  JournalImage image;
  image.segment_base = end.segment_base;
  image.position = position;
  flusher_->expect_image(*log->sync_);
  std::lock_guard lock(mutex_);
  if (log->closed_) return;
  log->end_ = end;
  // In front: appends before it may be waiting for the very sync that waits for the image. What an
  // image holds stays true as long as nothing is cut, and cuts wait until nothing is under way.
  log->items_.push_front({JournalContent(image), std::move(bytes), {}, end.offset});
  queue_locked(log);
}

void Journal::image_ahead(const std::shared_ptr<JournalLog>& log, std::uint64_t position,
                          std::vector<std::byte> bytes, const SyncPoint& end, JournalDone done) {
  JournalImage image;
  image.segment_base = end.segment_base;
  image.position = position;
  {
    std::lock_guard lock(mutex_);
    if (!log->closed_ && begun_ && !ended_ && !disk_->failed()) {
      // Syncs need not wait for it: the block is not written again before. It is kept until a sync
      // has covered the append that it is made for.
      const Offset needs = model::advance(end.offset, 1);
      log->items_.push_front({JournalContent(image), std::move(bytes), std::move(done), needs});
      queue_locked(log);
      return;
    }
  }
  done(false);
}

void Journal::image_used(const std::shared_ptr<JournalLog>& log, const SyncPoint& end,
                         bool appended) {
  std::lock_guard lock(mutex_);
  if (log->closed_) return;
  log->end_ = end;
  if (appended) return;
  unused_images_[log->id_] = end.offset;
  wake_locked();
}

void Journal::note(const std::shared_ptr<JournalLog>& log, JournalContent content,
                   JournalDone done) {
  {
    std::lock_guard lock(mutex_);
    if (!log->closed_ && begun_ && !ended_ && !disk_->failed()) {
      log->items_.push_back({content, {}, std::move(done)});
      queue_locked(log);
      return;
    }
  }
  if (done) done(false);
}

void Journal::note(const PartitionId& id, JournalContent content, JournalDone done) {
  {
    std::lock_guard lock(mutex_);
    if (begun_ && !ended_ && !disk_->failed()) {
      loose_.push_back({id, nullptr, {content, {}, std::move(done)}});
      wake_locked();
      return;
    }
  }
  if (done) done(false);
}

void Journal::synced(const std::shared_ptr<JournalLog>& log, const SyncPoint& point,
                     std::uint64_t cuts) {
  std::lock_guard lock(mutex_);
  if (log->closed_ || cuts != log->cuts_) return;
  if (MQ_MUTANT("bypass_without_record") && log->bypassing_) {
    log->bypassing_ = false;
    std::erase_if(log->items_, [&](const Item& item) {
      const auto* append = std::get_if<JournalLog::Append>(&item.what);
      return append && append->end.offset <= point.offset;
    });
    log->worker_.post([log, point, cuts] { log->advanced_(point, cuts); });
    if (!log->items_.empty()) queue_locked(log);
    return;
  }
  log->recovery_point_ = point;
  queue_locked(log);
}

void Journal::close(JournalLog& log) {
  std::deque<Item> dropped;
  {
    std::lock_guard lock(mutex_);
    log.closed_ = true;
    dropped.swap(log.items_);
    log.append_bytes_ = 0;
  }
  for (const Item& item : dropped) {
    if (item.done) item.done(false);
  }
}

void Journal::disk_failed() {
  std::lock_guard lock(mutex_);
  if (phase_ == Phase::running || !begun_ || ended_) return;
  phase_ = Phase::running;
  submit_round();
}

void Journal::end() {
  std::lock_guard lock(mutex_);
  ended_ = true;
  lock_ = nullptr;
}

void Journal::conclude(JournalDone done) {
  {
    std::lock_guard lock(mutex_);
    if (begun_ && !ended_ && !disk_->failed()) {
      conclude_ = std::move(done);
      wake_locked();
      return;
    }
  }
  done(false);
}

std::uint64_t Journal::concluded() const {
  std::lock_guard lock(mutex_);
  return concluded_;
}

/// At the end of a round.
void Journal::conclude_round() {
  JournalDone done;
  {
    std::lock_guard lock(mutex_);
    if (!conclude_ || disk_->failed() || !queue_.empty() || !loose_.empty()) return;
    done = std::exchange(conclude_, {});
  }
  const bool alone = live_.size() == 1 && live_.front()->needs.empty();
  const bool begun = alone && switch_file(alone);
  {
    std::lock_guard lock(mutex_);
    ended_ = true;
    if (begun) concluded_ = group_number_;
  }
  done(begun);
}

void Journal::give_up(const PartitionId& id, const JournalLogState& state) {
  std::lock_guard lock(mutex_);
  given_up_[id] = state;
  wake_locked();
}

/// The older files still say more of it until they are used again, which does no harm.
void Journal::take_given_up() {
  std::map<PartitionId, JournalLogState> given_up;
  {
    std::lock_guard lock(mutex_);
    given_up.swap(given_up_);
  }
  for (const auto& [id, state] : given_up) {
    states_[id] = state;
    for (const auto& file : live_) file->needs.erase(id);
  }
}

/// An image asks for more than what was appended when it was made. Nothing may come.
void Journal::take_unused_images() {
  std::map<PartitionId, Offset> unused;
  {
    std::lock_guard lock(mutex_);
    unused.swap(unused_images_);
  }
  for (const auto& [id, end] : unused) {
    const auto state = states_.find(id);
    for (const auto& file : live_) {
      const auto need = file->needs.find(id);
      if (need == file->needs.end()) continue;
      need->second = std::min(need->second, end);
      if (state == states_.end() || state->second.recovery_point.offset >= need->second)
        file->needs.erase(need);
    }
  }
  // No recovery point may come that would do it.
  if (!unused.empty()) free_files();
}

JournalDiskState Journal::disk_state() const {
  std::lock_guard lock(mutex_);
  return disk_state_;
}

void Journal::set_intact_since(const IntactSince& intact, JournalDone done) {
  JournalDiskState disk;
  {
    std::lock_guard lock(mutex_);
    disk_state_.intact = intact;
    disk = disk_state_;
  }
  note(PartitionId(), JournalDiskChange{disk}, std::move(done));
}

void Journal::note_disk(JournalDone done) {
  set_intact_since(disk_state().intact, std::move(done));
}

void Journal::queue_locked(const std::shared_ptr<JournalLog>& log) {
  if (!log->queued_) {
    log->queued_ = true;
    queue_.push_back(log);
  }
  wake_locked();
}

base::Duration Journal::window() const {
  if (group_time_ < kSlowGroup) return {};
  return std::min<base::Duration>(group_time_ / kWindowShare, kWindowMax);
}

/// A round begins when all are there that took part lately, or when the window closes.
void Journal::wake_locked() {
  news_ = true;
  if (phase_ == Phase::running || !begun_ || ended_) return;
  const bool enough = queue_.size() >= expected_logs_;
  if (phase_ == Phase::waiting && !enough) return;
  const auto span = window();
  if (phase_ == Phase::idle && !enough && !queue_.empty() && span > base::Duration(0)) {
    phase_ = Phase::waiting;
    wait_for_more(queue_.front()->worker_, span);
    return;
  }
  phase_ = Phase::running;
  submit_round();
}

void Journal::submit_round() {
  disk_->cold_reads->before_group(
      [self = shared_from_this()] { self->disk_->executor.submit([self] { self->run_round(); }); });
}

void Journal::wait_for_more(base::Runtime& runtime, base::Duration span) {
  const auto ticket = ++ticket_;
  runtime.post([self = weak_from_this(), &runtime, span, ticket] {
    runtime.start_timer(runtime.now() + span, [self, ticket] {
      const auto journal = self.lock();
      if (!journal) return;
      std::lock_guard lock(journal->mutex_);
      const bool mine = journal->phase_ == Phase::waiting && journal->ticket_ == ticket;
      if (!mine || journal->ended_) return;
      journal->phase_ = Phase::running;
      journal->submit_round();
    });
  });
}

void Journal::run_round() {
  bool stalled = false;
  round_began_ = disk_->home.now();
  take_new_files();
  take_growth();
  take_given_up();
  take_unused_images();
  if (!disk_->failed() && make_room(stalled)) {
    Group group = take(group_bytes_max(), false);
    for (const auto& [sync, end] : group.bypasses) flusher_->request(sync, end);
    if (commit(group)) {
      look_ahead();
      make_roomy();
    }
    conclude_round();
  }
  end_round(stalled);
}

void Journal::end_round(bool stalled) {
  std::vector<JournalDone> failed;
  disk_->cold_reads->after_group();
  {
    std::lock_guard lock(mutex_);
    const base::Duration took = disk_->home.now() - round_began_;
    group_time_ = (group_time_ * 3 + took) / 4;
    phase_ = Phase::idle;
    if (disk_->failed()) {
      for (auto& taken : loose_) failed.push_back(std::move(taken.item.done));
      failed.push_back(std::exchange(conclude_, {}));
      // Also of those that wait for a sync of their segment and so are not in the queue.
      for (const auto& [id, known] : logs_) {
        const auto log = known.lock();
        if (!log) continue;
        for (auto& item : log->items_) failed.push_back(std::move(item.done));
        log->items_.clear();
        log->queued_ = false;
      }
      loose_.clear();
      queue_.clear();
    } else if ((!stalled || news_) && (!queue_.empty() || !loose_.empty() || !new_files_.empty() ||
                                       !grown_.empty() || conclude_)) {
      // A round that found no room may not have seen what came meanwhile.
      wake_locked();
    }
  }
  for (const auto& done : failed) {
    if (done) done(false);
  }
}

Journal::Group Journal::take(std::uint64_t bytes_max, bool only_recovery_points) {
  Group group;
  std::lock_guard lock(mutex_);
  std::uint64_t bytes_left = bytes_max;
  if (!only_recovery_points) {
    std::size_t taken = 0;
    while (taken < loose_.size() && bytes_left >= kEntryOverhead) {
      group.entries.push_back(std::move(loose_[taken++]));
      bytes_left -= kEntryOverhead;
    }
    loose_.erase(loose_.begin(), loose_.begin() + static_cast<std::ptrdiff_t>(taken));
  }
  for (std::size_t n = queue_.size(); n > 0 && bytes_left >= kEntryOverhead; --n) {
    const auto log = std::move(queue_.front());
    queue_.pop_front();
    log->queued_ = false;
    if (log->closed_) continue;
    bool again = only_recovery_points && !log->items_.empty();
    if (!only_recovery_points) {
      again = take_from_locked(log, group, bytes_left);
    } else if (log->recovery_point_) {
      take_recovery_point_locked(log, group);
    }
    if (!again) continue;
    log->queued_ = true;
    queue_.push_back(log);
  }
  if (!only_recovery_points) note_taking_part_locked(group);
  return group;
}

void Journal::take_recovery_point_locked(const std::shared_ptr<JournalLog>& log, Group& group) {
  const SyncPoint point = *log->recovery_point_;
  log->recovery_point_.reset();
  log->bypassing_ = false;
  std::erase_if(log->items_, [&](const Item& item) {
    const auto* append = std::get_if<JournalLog::Append>(&item.what);
    if (!append || append->end.offset > point.offset) return false;
    log->append_bytes_ -= append->batch.bytes.size();
    return true;
  });
  group.entries.push_back({log->id_, log, {JournalContent(JournalRecoveryPoint{point}), {}, {}}});
  advance(group, log, point);
}

/// With the recovery point: that what lies below the cut is synced, so that from here on no file is
/// kept for this log, whose syncs are held back until the cut is done.
void Journal::take_cut_locked(const std::shared_ptr<JournalLog>& log, Group& group) {
  Item item = std::move(log->items_.front());
  log->items_.pop_front();
  const auto& content = std::get<JournalContent>(item.what);
  log->end_ = *cut_end(&content);
  log->recovery_point_.reset();
  ++log->cuts_;
  if (std::holds_alternative<JournalCut>(content))
    group.entries.push_back(
        {log->id_, log, {JournalContent(JournalRecoveryPoint{log->end_}), {}, {}}});
  group.entries.push_back({log->id_, log, std::move(item)});
}

/// A log's entries in a group lie together, so the newest point takes the place of the one before.
void Journal::advance(Group& group, const std::shared_ptr<JournalLog>& log,
                      const SyncPoint& point) {
  if (group.advances.empty() || group.advances.back().log != log)
    group.advances.push_back({log, point, log->cuts_});
  group.advances.back().point = point;
}

/// True when the log goes on in the next group.
bool Journal::take_from_locked(const std::shared_ptr<JournalLog>& log, Group& group,
                               std::uint64_t& bytes_left) {
  const auto spend = [&](std::uint64_t bytes) {
    bytes_left -= std::min(bytes_left, bytes + kEntryOverhead);
  };
  const auto known = states_.find(log->id_);
  Offset end = known == states_.end() ? Offset(0) : known->second.end;
  if (log->recovery_point_) {
    end = std::max(end, log->recovery_point_->offset);
    take_recovery_point_locked(log, group);
    spend(0);
  }
  bool image_taken = false;
  while (!log->items_.empty()) {
    Item& item = log->items_.front();
    std::uint64_t bytes = item.image.size();
    if (const auto* append = std::get_if<JournalLog::Append>(&item.what)) {
      bytes = append->batch.bytes.size();
      if (log->bypassing_) return false;
      if (append->base != end || log->append_bytes_ > bypass_bytes()) {
        // The block that the sync writes again must be safe first.
        if (image_taken) return true;
        log->bypassing_ = true;
        cramped_ = cramped_ || log->append_bytes_ <= disk_->config.journal_bypass_bytes;
        group.bypasses.emplace_back(log->sync_, log->end_);
        return false;
      }
      if (bytes + kEntryOverhead > bytes_left) return true;
      end = append->end.offset;
      log->append_bytes_ -= bytes;
      advance(group, log, append->end);
    } else if (bytes + kEntryOverhead > bytes_left) {
      return true;
    } else if (const auto* cut = cut_end(std::get_if<JournalContent>(&item.what))) {
      end = cut->offset;
      take_cut_locked(log, group);
      spend(kEntryOverhead);
      continue;
    }
    image_taken = image_taken || !item.image.empty();
    spend(bytes);
    group.entries.push_back({log->id_, log, std::move(item)});
    log->items_.pop_front();
  }
  return false;
}

/// Counts the logs of this group and the one before: so many may come again before the next.
void Journal::note_taking_part_locked(const Group& group) {
  const std::uint64_t number = ++rounds_;
  std::size_t logs = 0;
  std::size_t again = 0;
  for (const auto& advance : group.advances) {
    auto& last = advance.log->last_group_;
    if (last == number) continue;
    again += last + 1 == number ? 1 : 0;
    last = number;
    ++logs;
  }
  expected_logs_ = logs + last_logs_ - again;
  last_logs_ = logs;
}

}  // namespace mq::storage
