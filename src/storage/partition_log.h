#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "base/runtime.h"
#include "model/damaged_place.h"
#include "model/ids.h"
#include "model/record_batch.h"
#include "model/topic_settings.h"
#include "storage/producer_table.h"
#include "storage/storage_error.h"

namespace mq::storage {

/// What one append was given. Offsets are [base_offset, end_offset).
struct AppendInfo {
  model::Offset base_offset;
  model::Offset end_offset;  ///< exclusive
  model::LeaderEpoch leader_epoch;
  std::int64_t append_time_ms = -1;
  bool repeat = false;  ///< nothing was appended now: the batch was there already
};

/// Whole batches that follow each other without a gap, as pieces that hold one batch or more each.
/// The first one may begin below the offset asked for (it contains it).
struct ReadResult {
  std::vector<base::SharedBytes> batches;
  std::size_t bytes = 0;
  model::Offset end_offset;  ///< where to go on; the offset asked for when nothing was read
};

/// Where a time lies in a log: the first batch appended then or later, and its append time.
struct TimeLookup {
  model::Offset offset;
  std::int64_t append_time_ms = -1;  ///< -1: there is none, and `offset` is the log end
};

/// The first offset that was appended in a leader epoch.
struct EpochStart {
  model::LeaderEpoch leader_epoch;
  model::Offset start_offset;
  friend bool operator==(const EpochStart&, const EpochStart&) = default;
};

/// The log of one partition on one disk: a directory of segments of which only the last is written.
///
/// Owned by its Disk, which makes, recovers and deletes it. Lives on one Runtime, the partition's
/// worker: every member is called there. append() and read() never suspend; the bytes of an append
/// are in the page cache when it returns and durable when durable_offset() has passed them.
class PartitionLog {
 public:
  virtual ~PartitionLog() = default;

  [[nodiscard]] virtual const model::PartitionId& id() const = 0;
  [[nodiscard]] virtual const std::string& topic_name() const = 0;

  /// Validates one produced batch (both checksums, sizes, the topic's batch limit), stamps offset,
  /// epoch and append time into it in place and writes it at the log end. `batch` lies inside
  /// `owner`, which the tail cache may keep, so its bytes stay as they are afterwards; an empty
  /// owner is allowed (the cache copies then).
  /// Errors: corrupt_batch, unsupported_format, batch_too_large, storage_full, io_failed: nothing
  /// was appended, the log is as before. disk_failed, partition_corrupt, closed: see failure().
  virtual Result<AppendInfo> append(base::Buffer owner, base::MutableBytes batch) = 0;
  /// The same for a batch that model::parse_produced() has passed already, under whatever limit;
  /// `parsed` is a view of the same bytes.
  virtual Result<AppendInfo> append(base::Buffer owner, base::MutableBytes batch,
                                    const model::RecordBatchView& parsed) = 0;
  /// False while an append might make the worker sleep, has to wait for the journal, or the disk
  /// has too much to write already: append_later() then.
  [[nodiscard]] virtual bool appends_inline() const { return true; }
  /// The disk has much to write back that was appended to its logs: what can come later should.
  [[nodiscard]] virtual bool write_back_lags() const { return false; }
  /// The same as append(), once the disk has room for more; while appends are slow on a thread of
  /// the disk. Nothing else may be appended meanwhile. What lies in `parsed` stays until then.
  virtual asio::awaitable<Result<AppendInfo>> append_later(base::Buffer owner,
                                                           base::MutableBytes batch,
                                                           model::RecordBatchView parsed);

  /// Appends one batch as another broker stamped it, whole and alone in `batch`, for a replica that
  /// follows: offset, epoch and append time stay, both checksums are checked (LOG-4), producers and
  /// epoch starts follow. Needs no start_epoch(); append() needs one again afterwards. `batch` lies
  /// inside `owner` as in append().
  /// Errors: corrupt_batch (also one that breaks a rule of the format), unsupported_format;
  /// offset_out_of_range (it does not begin at log_end_offset()); stale_leader_epoch (below
  /// last_batch_epoch(), or of an epoch that was begun here); storage_full, io_failed: nothing was
  /// appended, the log is as before. disk_failed, partition_corrupt, closed: see failure().
  virtual Result<AppendInfo> append_replicated(base::Buffer owner, base::Bytes batch) = 0;
  /// The same when appends_inline() is false; what append_later() says holds.
  virtual asio::awaitable<Result<AppendInfo>> append_replicated_later(base::Buffer owner,
                                                                      base::Bytes batch);

  /// What the log says of a producer's newest batches (IDM-4); null if nothing. Valid until the
  /// next call.
  [[nodiscard]] virtual const ProducerState* find_producer(std::int64_t producer_id) = 0;
  /// Whether one more producer can be remembered without forgetting one that appended lately, whose
  /// repeats would then be taken for new.
  [[nodiscard]] virtual bool has_room_for_a_producer() const = 0;

  [[nodiscard]] virtual model::Offset log_start_offset() const = 0;
  [[nodiscard]] virtual model::Offset log_end_offset() const = 0;
  /// End of the longest prefix whose every byte is durable.
  [[nodiscard]] virtual model::Offset durable_offset() const = 0;
  /// durable_offset() under durability `disk`, log_end_offset() under `memory`. Never falls.
  [[nodiscard]] virtual model::Offset confirmed_end() const = 0;

  /// The epoch that appends are stamped with; before start_epoch() that of the last batch, or -1.
  [[nodiscard]] virtual model::LeaderEpoch leader_epoch() const = 0;
  /// That of the last batch in the log; -1 if there is none, or if all before the log end is gone.
  /// Lower than leader_epoch() when nothing was appended in the newest epoch.
  [[nodiscard]] virtual model::LeaderEpoch last_batch_epoch() const = 0;
  /// Begins a new leadership. Needed before the first append of a run. stale_leader_epoch unless it
  /// is above the log's last one.
  virtual Result<void> start_epoch(model::LeaderEpoch epoch) = 0;
  /// Oldest first; rebuilt from the log when lost.
  [[nodiscard]] virtual const std::vector<EpochStart>& epoch_starts() const = 0;

  /// Batches of [from, limit) up to bytes_max bytes, from memory and the page cache only. The batch
  /// that contains `from` always comes, whatever its size; no batch that ends above `limit` does.
  /// Errors: not_cached, offset_out_of_range (from outside [log start, log end]),
  /// partition_corrupt, unsupported_format (the batch at `from` is one of a newer mq), disk_failed,
  /// closed.
  virtual Result<ReadResult> read(model::Offset from, model::Offset limit,
                                  std::size_t bytes_max) = 0;
  /// The same through the disk's threads; body checksums are verified on the way.
  virtual asio::awaitable<Result<ReadResult>> read_from_disk(model::Offset from,
                                                             model::Offset limit,
                                                             std::size_t bytes_max) = 0;

  /// The first offset that may be read and was appended at `time_ms` or later, by the broker's
  /// clock. May go to the disk. Errors: partition_corrupt, unsupported_format, disk_failed, closed.
  virtual asio::awaitable<Result<TimeLookup>> find_time(std::int64_t time_ms) = 0;

  /// Raises the log start to `to`: durable when it returns (LOG-10). Segments wholly below it are
  /// removed soon after. Nothing changes when `to` is not above the log start.
  /// Errors: offset_out_of_range (above confirmed_end()); storage_full (it is tried again, so the
  /// start may rise later); disk_failed, partition_corrupt, closed.
  virtual asio::awaitable<Result<void>> trim(model::Offset to) = 0;

  /// Ends the log at `to`, where a batch begins: what lies above is gone, durably, when it returns,
  /// and the next append is given `to`. For a replica whose leader, in `epoch`, has another log;
  /// the only call that lowers log_end_offset(), durable_offset() and confirmed_end(). Nothing may
  /// be appended meanwhile; reads wait. Nothing happens when the log ends there already.
  /// Errors: stale_leader_epoch (below leader_epoch()); offset_out_of_range (outside of [log start,
  /// log end], or inside a batch); disk_failed, partition_corrupt, closed.
  virtual asio::awaitable<Result<void>> truncate(model::Offset to, model::LeaderEpoch epoch) = 0;

  /// Copies the segments in which something lies at or above `from` to unknown/, durably when it
  /// returns: before a truncate() that gives up what nobody else may have. What cannot be read is
  /// left out. Nothing may be appended meanwhile. Errors: storage_full; disk_failed, closed,
  /// partition_corrupt.
  virtual asio::awaitable<Result<void>> keep_aside(model::Offset from);

  /// Throws away all that is in the log and begins it anew, empty, at `start`, durably when it
  /// returns: log start, log end and high-water mark are `start` then, nothing is known of
  /// producers and epochs but the newest one. For a replica whose leader, in `epoch`, has nothing
  /// any more of what would come next here. The broker must not be counted on for what the log
  /// held: it is in no ISR. Nothing may be appended meanwhile; reads wait. A crash leaves the log
  /// as before, or begun anew. Errors: stale_leader_epoch (below leader_epoch());
  /// offset_out_of_range (below log_end_offset() or negative); storage_full (nothing happened);
  /// disk_failed, partition_corrupt, closed.
  virtual asio::awaitable<Result<void>> restart_at(model::Offset start,
                                                   model::LeaderEpoch epoch) = 0;

  /// How far the high-water mark was seen, so that the next run can begin there. A hint, written
  /// down every few seconds and at a clean stop: it may be old, and proves nothing. Within [log
  /// start, log end]; the log start when nothing is known. Kept only by a call here.
  virtual void set_high_watermark_hint(model::Offset offset) = 0;
  [[nodiscard]] virtual model::Offset high_watermark_hint() const = 0;

  /// Retention removes nothing that is not below it, however old: what is not committed, or, of a
  /// replica that follows, what its leader still has. Offset(-1), and at first: it goes by the
  /// settings alone. Whoever serves the log says it.
  virtual void set_retention_limit(model::Offset) {}

  /// `changed` is called on the worker whenever confirmed_end(), log_start_offset() or failure()
  /// moved by itself, that is, not from inside append(), whose caller sees the new state. Replaces
  /// the function set before.
  virtual void on_changed(std::function<void()> changed) = 0;
  /// Why nothing is served: partition_corrupt, unsupported_format, disk_failed or closed; no error
  /// while all is well.
  [[nodiscard]] virtual Error failure() const = 0;
  /// The same for people, with the place of the damage where that is known. Empty: all is well.
  [[nodiscard]] virtual std::string failure_text() const {
    return failure() ? failure().message() : std::string();
  }

  /// Damage that a read has met and that is still there, for people: which file, at which byte.
  /// Empty while none is known. What lies before and behind it is served.
  [[nodiscard]] virtual std::string read_damage() const { return {}; }
  /// The same for programs: of each segment the first place known, ascending.
  [[nodiscard]] virtual std::vector<model::DamagedPlace> damaged_places() const { return {}; }

  virtual void set_settings(const model::TopicSettings& settings) = 0;
  [[nodiscard]] virtual const model::TopicSettings& settings() const = 0;
  [[nodiscard]] virtual std::uint64_t bytes_on_disk() const = 0;
  [[nodiscard]] virtual std::uint32_t segments() const = 0;
};

}  // namespace mq::storage
