#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/disk_executor.h"
#include "base/runtime.h"

namespace mq::storage {

/// Turns at one disk for those who read what is not in memory: readers far behind, searches, and
/// behind all of them whoever reads in the background. At most two turns are under way at once, on
/// threads of their own, so that no sync waits for a reader to come off a thread; who waits gets
/// his turn in order.
///
/// On a disk whose journal has to wait for the same head, readers and groups take it by turns: a
/// group waits for the reader's step under way, and the reader then for groups, for half as long
/// as its step took, or until no more of them come. Neither starves, and the head does not move
/// between them with every request. What is written behind takes its turns there as well, a stride
/// at a time, also when nobody reads: else a group waits for all strides that are under way.
///
/// Thread-safe. As a DiskExecutor it takes work of one step; run() resumes the caller at home.
class ColdReads final : public base::DiskExecutor, public std::enable_shared_from_this<ColdReads> {
 public:
  /// Reads at most kStepBytes; true while there is more to do.
  using Step = std::function<bool()>;
  static constexpr std::size_t kTurnsMax = 2;
  /// A drive goes on with what lies behind a read as long as the next one is waiting already;
  /// between two reads it turns to what it has to write, so a step is one read and a long one.
  static constexpr std::size_t kStepBytes = std::size_t{8} << 20;

  /// `shares_head`: the journal lies on the same disk. Everything given outlives the last turn.
  ColdReads(base::DiskExecutor& threads, base::Runtime& home, bool shares_head);

  /// Returns when `step` has returned false, on the caller's executor.
  asio::awaitable<void> take_turn(Step step);
  void submit(std::function<void()> work) override;
  /// For work that comes after all readers.
  [[nodiscard]] base::DiskExecutor& background() noexcept { return background_; }
  /// For strides of write-behind, a step each, which are no readers.
  [[nodiscard]] base::DiskExecutor& strides() noexcept { return strides_; }
  /// Groups have to wait for a head at present, so that strides should be written by turns.
  [[nodiscard]] bool takes_turns() const;

  /// Calls `begin` once the head is free for a group of the journal: now, or when the readers have
  /// come to the end of a step. One group at a time; after_group() follows.
  void before_group(std::function<void()> begin);
  void after_group();

  /// Turns of readers under way or waiting.
  [[nodiscard]] std::size_t readers() const;

 private:
  enum class Kind { reader, background, stride };
  struct Turn {
    Step step;
    std::function<void()> ended;
    Kind kind = Kind::reader;
  };
  using TurnPtr = std::shared_ptr<Turn>;
  class Steps final : public base::DiskExecutor {
   public:
    Steps(ColdReads& reads, Kind kind) : reads_(reads), kind_(kind) {}
    void submit(std::function<void()> work) override { reads_.add_step(kind_, std::move(work)); }

   private:
    ColdReads& reads_;
    const Kind kind_;
  };

  void add(Turn turn);
  void go_on_locked(TurnPtr turn);
  void start_more_locked();
  void perform(const TurnPtr& turn);
  bool park(const TurnPtr& turn, base::Duration took);
  [[nodiscard]] bool slot_over_locked() const;
  [[nodiscard]] std::size_t turns_max_locked() const;
  void note_step_locked(base::Duration took);
  [[nodiscard]] std::function<void()> freed_locked();
  void begin_group_locked();
  void end_hold_after(base::Duration span, std::uint64_t hold);
  void end_groups_slot_at(base::TimePoint at, std::uint64_t slot);
  void let_readers_go_on_locked();
  [[nodiscard]] bool groups_expected_locked() const;
  void add_step(Kind kind, std::function<void()> work);

  base::DiskExecutor& threads_;
  base::Runtime& home_;
  const bool shares_head_;
  Steps background_;
  Steps strides_;

  mutable std::mutex mutex_;  // guards the following
  std::deque<TurnPtr> waiting_;
  std::deque<TurnPtr> waiting_behind_;  // in the background
  std::vector<TurnPtr> parked_;         // in the middle, until a group has ended
  std::size_t turns_ = 0;               // under way, parked ones among them
  std::size_t reading_ = 0;             // of which so many read now
  std::size_t readers_ = 0;
  std::size_t steps_ = 0;  // read since the groups had their slot
  bool group_running_ = false;
  std::function<void()> group_;  // waits for the head
  std::uint64_t holds_ = 0;
  bool groups_slot_ = false;  // readers wait for groups
  base::TimePoint groups_until_{};
  std::uint64_t slots_ = 0;
  base::TimePoint group_began_{};
  base::Duration group_time_{};  // of late
  base::Duration step_time_{};   // of late
};

}  // namespace mq::storage
