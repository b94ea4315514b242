#include <algorithm>

#include "base/check.h"
#include "base/mutants.h"
#include "storage/checked_clock.h"
#include "storage/local_log.h"
#include "storage/storage_format.h"

namespace mq::storage {
namespace {

using model::LeaderEpoch;
using model::ModelErrc;
using model::Offset;

StorageErrc refusal_of(const Error& error) {
  if (error == make_error_code(ModelErrc::unsupported_format))
    return StorageErrc::unsupported_format;
  if (error == make_error_code(ModelErrc::too_large)) return StorageErrc::batch_too_large;
  return StorageErrc::corrupt_batch;
}

/// LOG-4: of a leader, too, nothing is taken unseen.
Result<model::RecordBatchView> parse_replicated(base::Bytes batch) {
  auto parsed = model::RecordBatchView::parse(batch);
  if (!parsed) return refusal_of(parsed.error());
  if (parsed->base_offset() < Offset(0) || parsed->leader_epoch() < LeaderEpoch(0))
    return StorageErrc::corrupt_batch;  // nobody has stamped it
  return *parsed;
}

}  // namespace

Result<AppendInfo> LocalLog::append(base::Buffer owner, base::MutableBytes batch) {
  MQ_TRY_VOID(takes_appends());
  const auto parsed = model::parse_produced(batch, spec_.settings.batch_bytes);
  if (!parsed) return refusal_of(parsed.error());
  return append(std::move(owner), batch, *parsed);
}

Result<AppendInfo> LocalLog::append(base::Buffer owner, base::MutableBytes batch,
                                    const model::RecordBatchView& parsed) {
  return append_now({std::move(owner), parsed, batch});
}

Result<AppendInfo> LocalLog::append_replicated(base::Buffer owner, base::Bytes batch) {
  MQ_TRY_VOID(takes_appends());
  MQ_TRY(const auto parsed, parse_replicated(batch));
  return append_now({std::move(owner), parsed, {}});
}

Result<void> LocalLog::takes_appends() const {
  if (failure_ || disk_->failed()) [[unlikely]]
    return failure();
  if (stopping_) return StorageErrc::closed;
  return {};
}

Result<void> LocalLog::may_append(const Incoming& incoming) const {
  MQ_TRY_VOID(takes_appends());
  MQ_CHECK(!writing_, "partition {}: two appends at once", spec_.id.text());
  MQ_CHECK(!cutting_, "partition {}: append while it is cut", spec_.id.text());
  const auto& batch = incoming.parsed;
  if (incoming.replicated()) {
    if (batch.base_offset() != end_.offset) return StorageErrc::offset_out_of_range;
    const bool own = may_append_ && batch.leader_epoch() == leader_epoch_;
    if (batch.leader_epoch() < end_.leader_epoch || own) return StorageErrc::stale_leader_epoch;
  } else {
    MQ_CHECK(may_append_, "partition {}: append without start_epoch()", spec_.id.text());
    if (batch.batch_bytes() > spec_.settings.batch_bytes) return StorageErrc::batch_too_large;
  }
  if (disk_->full() || cut_pending_) return StorageErrc::storage_full;
  return {};
}

/// LOG-8: whatever the clock does, append times do not fall.
std::int64_t LocalLog::append_time_of(const Incoming& incoming) const {
  return incoming.replicated() ? incoming.parsed.append_time_ms() : own_append_time_ms();
}

std::int64_t LocalLog::own_append_time_ms() const {
  const auto* const clock = disk_->config.clock;
  const std::int64_t time_ms =
      clock ? clock->append_time_ms(*spec_.worker) : spec_.worker->wall_clock_ms();
  return MQ_MUTANT("append_time_follows_the_clock") ? time_ms
                                                    : std::max(end_.append_time_ms, time_ms);
}

/// Gives a batch that is the leader's own its place; another's has one.
AppendInfo LocalLog::stamp(const Incoming& incoming, std::int64_t time_ms) const {
  const auto delta = std::int64_t{incoming.parsed.last_offset_delta()} + 1;
  AppendInfo info{end_.offset, model::advance(end_.offset, delta), leader_epoch_, time_ms};
  if (incoming.replicated()) {
    info.leader_epoch = incoming.parsed.leader_epoch();
  } else {
    model::stamp(incoming.to_stamp, info.base_offset, info.leader_epoch, time_ms);
  }
  return info;
}

Result<AppendInfo> LocalLog::append_now(Incoming incoming) {
  MQ_TRY_VOID(may_append(incoming));
  const std::int64_t time_ms = append_time_of(incoming);
  const auto began = spec_.worker->now();
  bool rolls = rolling_ || must_roll(incoming.parsed, time_ms);
  // A leader's clock may be ahead, and its batch old enough for a new segment when nothing here
  // was. It is still taken into the old one: rolls_soon() then, and a thread makes the next one's
  // file.
  if (rolls && !rolling_ && incoming.replicated() && !rolls_soon())
    rolls = must_roll(incoming.parsed, end_.append_time_ms);
  if (rolls) {
    MQ_TRY_VOID(roll());
  }
  const AppendInfo info = stamp(incoming, time_ms);
  const base::Bytes bytes = incoming.parsed.bytes();
  const auto taken = active_->write_at(std::span(&bytes, 1), end_.position);
  const auto now = spec_.worker->now();
  disk_->note_append_time(now, now - began);
  MQ_TRY_VOID(wrote(bytes, taken));
  written(info, std::move(incoming));
  return info;
}

/// One system call, always at the end: what was written stays as it is (LOG-2). LOG-6: on any
/// failure the file and the log end are as before.
Result<void> LocalLog::wrote(base::Bytes batch, const Result<std::size_t>& taken) {
  if (taken && *taken == batch.size()) [[likely]]
    return {};
  const bool full = taken || taken.error() == make_error_code(base::BaseErrc::no_space);
  const std::string path = path_of(segment_file_name(end_.segment_base));
  if (!full) {
    disk_->fail("write", path, taken.error());
    disk_changed();
    return StorageErrc::disk_failed;
  }
  if (const auto undone = active_->truncate(end_.position); !undone) {
    disk_->fail("ftruncate", path, undone.error());
    disk_changed();
    return StorageErrc::disk_failed;
  }
  allocated_ = end_.position;
  disk_->set_full(true);
  return StorageErrc::storage_full;
}

void LocalLog::written(const AppendInfo& info, Incoming incoming) {
  const std::uint64_t position = end_.position;
  const auto& batch = incoming.parsed;
  const base::SharedBytes shared{incoming.owner, batch.bytes()};
  if (incoming.replicated()) follow_epoch(info);
  active_index_.note(info.base_offset, end_.position);
  active_times_.note(info.append_time_ms, info.base_offset, end_.position);
  tail_.add(std::move(incoming.owner), batch.bytes(), info.base_offset, info.end_offset);
  const SyncPoint before = end_;
  if (end_.position == 0) end_.segment_first_append_time_ms = info.append_time_ms;
  end_.offset = info.end_offset;
  end_.position += batch.batch_bytes();
  if (before.position <= journal_block_of(end_.position)) whole_ = before;
  recent_bytes_.store(bytes_on_disk(), std::memory_order_relaxed);
  end_.leader_epoch = info.leader_epoch;
  end_.append_time_ms = info.append_time_ms;
  note_producer(batch, position);
  journal_image(position);
  if (spec_.settings.durability == model::Durability::disk) {
    journal_append(shared, info.base_offset, position);
  } else {
    confirmed_ = end_.offset;
  }
  if (end_.position + allocate_step_ / 2 > allocated_ && end_.position > kAllocateFrom)
    allocate_ahead();
  disk_->write_behind->appended(*dirty_, batch.batch_bytes());
  if (end_.position - written_behind_ >= stride_bytes()) write_behind(Behind::whole_strides);
  if (disk_->note_appended(batch.batch_bytes())) disk_->ask_for_space_check();
}

/// Before anything may sync the batch, so that no checkpoint knows it without its epoch. An epoch
/// that began here and in which nothing was appended has not begun in the leader's log.
void LocalLog::follow_epoch(const AppendInfo& info) {
  may_append_ = false;
  auto& starts = epoch_starts_;
  const std::size_t known = starts.size();
  const auto in_place = [&] {
    return starts.empty() || starts.back().start_offset < info.base_offset ||
           starts.back().leader_epoch == info.leader_epoch;
  };
  while (!in_place()) starts.pop_back();
  const bool begins = starts.empty() || starts.back().leader_epoch < info.leader_epoch;
  if (begins) starts.push_back({info.leader_epoch, info.base_offset});
  leader_epoch_ = std::max(leader_epoch_, info.leader_epoch);
  if (begins || starts.size() != known) flusher_->set_epoch_starts(*sync_, starts);
}

bool LocalLog::appends_inline() const {
  if (failure_ || disk_->failed()) return true;  // it is refused at once
  return !writing_ && !needs_image() && has_room() && !rolls_soon() &&
         !disk_->appends_are_slow(spec_.worker->now());
}

/// Within the dirty budget, and not while the next segment's file is made, or in the middle of a
/// step of syncs, of which a producer of `disk` topics waits for the end anyway.
bool LocalLog::has_room() const {
  const bool in_step =
      spec_.settings.durability == model::Durability::disk && flusher_->in_step(*sync_);
  return !rolling_ && !in_step && disk_->write_behind->has_room();
}

asio::awaitable<Result<AppendInfo>> PartitionLog::append_later(base::Buffer owner,
                                                               base::MutableBytes batch,
                                                               model::RecordBatchView parsed) {
  co_return append(std::move(owner), batch, parsed);
}

asio::awaitable<Result<void>> PartitionLog::keep_aside(model::Offset /*from*/) {
  co_return Result<void>();
}

asio::awaitable<Result<AppendInfo>> PartitionLog::append_replicated_later(base::Buffer owner,
                                                                          base::Bytes batch) {
  co_return append_replicated(std::move(owner), batch);
}

asio::awaitable<Result<AppendInfo>> LocalLog::append_later(base::Buffer owner,
                                                           base::MutableBytes batch,
                                                           model::RecordBatchView parsed) {
  Incoming incoming{std::move(owner), parsed, batch};
  return append_when_possible(std::move(incoming));
}

asio::awaitable<Result<AppendInfo>> LocalLog::append_replicated_later(base::Buffer owner,
                                                                      base::Bytes batch) {
  MQ_CO_TRY(const auto parsed, parse_replicated(batch));
  Incoming incoming{std::move(owner), parsed, {}};
  co_return co_await append_when_possible(std::move(incoming));
}

asio::awaitable<Result<AppendInfo>> LocalLog::append_when_possible(Incoming incoming) {
  const Visit visit(*this);
  co_await wait_for_room();
  MQ_CO_TRY_VOID(may_append(incoming));
  const bool imaged = co_await image_first();
  Result<AppendInfo> done = make_error_code(StorageErrc::closed);
  const auto ready = co_await roll_first(incoming);
  if (!ready) {
    done = ready.error();
  } else if (disk_->appends_are_slow(spec_.worker->now())) {
    done = co_await append_on_thread(std::move(incoming));
  } else {
    done = append_now(std::move(incoming));
  }
  if (!imaged) co_return done;
  journal_->image_used(journal_log_, end_, done.has_value());
  if (!done) image_ahead_ = ~std::uint64_t{0};  // the journal need not keep it
  imaging_ = false;
  wake();
  co_return done;
}

/// Making a file waits for the disk where its head is busy, for a tenth of a second and more.
asio::awaitable<Result<void>> LocalLog::roll_first(const Incoming& incoming) {
  const std::int64_t time_ms = append_time_of(incoming);
  if (!must_roll(incoming.parsed, time_ms)) co_return Result<void>();
  MQ_CO_TRY_VOID(co_await roll_later());
  co_return may_append(incoming);
}

asio::awaitable<void> LocalLog::wait_for_room() {
  while (!failure() && !stopping_ && !has_room()) {
    if (!disk_->write_behind->has_room() && !std::exchange(wants_room_, true)) {
      disk_->write_behind->when_room(*spec_.worker, [self = weak_from_this()] {
        const auto log = self.lock();
        if (!log) return;
        log->wants_room_ = false;
        log->wake();
      });
    }
    co_await wake_.wait();
  }
}

/// The log does not move while the disk's thread writes: nothing else is appended, rolled or cut.
asio::awaitable<Result<AppendInfo>> LocalLog::append_on_thread(Incoming incoming) {
  MQ_CO_TRY_VOID(may_append(incoming));
  disk_->counters.get("storage_appends_on_thread_total").add();
  const AppendInfo info = stamp(incoming, append_time_of(incoming));
  const base::Bytes bytes = incoming.parsed.bytes();
  Result<std::size_t> taken = make_error_code(StorageErrc::closed);
  const auto work = [disk = disk_, file = active_, bytes, position = end_.position, &taken] {
    const auto began = disk->home.now();
    taken = file->write_at(std::span(&bytes, 1), position);
    const auto now = disk->home.now();
    disk->note_append_time(now, now - began);
  };
  writing_ = true;
  co_await disk_->append_threads.run(work);
  writing_ = false;
  wake();
  if (failure()) co_return failure();
  MQ_CO_TRY_VOID(wrote(bytes, taken));
  written(info, std::move(incoming));
  co_return info;
}

}  // namespace mq::storage
