#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "base/buffer.h"
#include "base/runtime.h"
#include "base/wait_list.h"
#include "storage/flusher.h"
#include "storage/journal_format.h"

namespace mq::storage {

/// Called on a disk thread when the group with an entry is durable (true), or never will be.
using JournalDone = std::function<void(bool durable)>;

/// A coroutine's wait for an entry.
class JournalWait {
 public:
  explicit JournalWait(base::Runtime& runtime) : runtime_(runtime), wake_(runtime) {}
  /// What to give the Journal.
  static JournalDone done(const std::shared_ptr<JournalWait>& wait) {
    return [wait](bool durable) {
      wait->runtime_.post([wait, durable] {
        wait->durable_ = durable;
        wait->wake_.notify_all();
      });
    };
  }
  /// On the runtime. disk_failed if it never will be.
  static asio::awaitable<Result<void>> until_durable(std::shared_ptr<JournalWait> wait) {
    while (!wait->durable_) co_await wait->wake_.wait();
    const bool durable = *wait->durable_;
    if (!durable) co_return make_error_code(StorageErrc::disk_failed);
    co_return Result<void>();
  }

 private:
  base::Runtime& runtime_;
  base::WaitList wake_;
  std::optional<bool> durable_;
};

/// One log's part in the journal: what waits to be written, and whom to tell. Made by the log; its
/// contents belong to the Journal's lock.
class JournalLog {
 public:
  /// Runs on `worker`: everything up to `point` is durable, unless the log has been cut since.
  using Advanced = std::function<void(const SyncPoint& point, std::uint64_t cuts)>;

  JournalLog(model::PartitionId id, base::Runtime& worker, std::shared_ptr<LogSync> sync,
             const SyncPoint& end, Advanced advanced)
      : id_(id),
        worker_(worker),
        sync_(std::move(sync)),
        advanced_(std::move(advanced)),
        end_(end) {}

 private:
  friend class Journal;
  struct Append {
    base::SharedBytes batch;
    model::Offset base;
    model::Offset segment_base;
    std::uint64_t position = 0;
    SyncPoint end;
  };
  /// An append, an image of a block, or anything without bytes of its own.
  struct Item {
    std::variant<Append, JournalContent> what;
    std::vector<std::byte> image{};
    JournalDone done{};
    /// The journal file is kept until the recovery point has passed it; -1: no matter.
    model::Offset needs{-1};
  };

  const model::PartitionId id_;
  base::Runtime& worker_;
  const std::shared_ptr<LogSync> sync_;
  const Advanced advanced_;

  bool queued_ = false;
  bool closed_ = false;
  /// Its appends wait until they are synced in their segment: there are too many for the journal.
  bool bypassing_ = false;
  std::deque<Item> items_;
  std::uint64_t append_bytes_ = 0;           // in items_
  std::optional<SyncPoint> recovery_point_;  // to be recorded
  std::uint64_t cuts_ = 0;
  SyncPoint end_;                 // of the last append
  std::uint64_t last_group_ = 0;  // in which it took part
};

}  // namespace mq::storage
