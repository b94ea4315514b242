#include "storage/cold_reads.h"

#include <boost/asio/associated_executor.hpp>

namespace mq::storage {
namespace {

constexpr std::size_t kStepsPerSlot = 1;
/// Groups are no longer expected when so long none came.
constexpr auto kGroupsExpected = std::chrono::seconds(1);
/// A disk whose steps take longer has one head: turns come one after the other.
constexpr auto kSlowStep = std::chrono::milliseconds(5);
/// Groups that take less leave no time that a slot could use better: no head has to move.
constexpr auto kSlowGroup = std::chrono::milliseconds(4);
/// What groups get of the head for each step, as a part of its time: a writer whose few batches
/// under way make small groups gets some of them between two steps.
constexpr int kGroupsShare = 2;
/// Readers go on earlier when so long no group came.
constexpr auto kGroupsGap = std::chrono::milliseconds(10);
/// A group waits no longer than this for readers, whatever holds them up.
constexpr auto kHoldMax = std::chrono::milliseconds(250);

}  // namespace

ColdReads::ColdReads(base::DiskExecutor& threads, base::Runtime& home, bool shares_head)
    : threads_(threads),
      home_(home),
      shares_head_(shares_head),
      background_(*this, Kind::background),
      strides_(*this, Kind::stride) {}

asio::awaitable<void> ColdReads::take_turn(Step step) {
  return asio::async_initiate<const asio::use_awaitable_t<>&, void()>(
      [this](auto handler, Step steps) {
        auto held = std::make_shared<decltype(handler)>(std::move(handler));
        Turn turn;
        turn.step = std::move(steps);
        turn.ended = [held] {
          auto executor = asio::get_associated_executor(*held);
          asio::post(executor, std::move(*held));
        };
        add(std::move(turn));
      },
      asio::use_awaitable, std::move(step));
}

void ColdReads::submit(std::function<void()> work) { add_step(Kind::reader, std::move(work)); }

void ColdReads::add_step(Kind kind, std::function<void()> work) {
  Turn turn;
  turn.kind = kind;
  turn.step = [work = std::move(work)] {
    work();
    return false;
  };
  add(std::move(turn));
}

void ColdReads::add(Turn turn) {
  auto added = std::make_shared<Turn>(std::move(turn));
  std::lock_guard lock(mutex_);
  if (added->kind == Kind::reader) ++readers_;
  auto& queue = added->kind == Kind::background ? waiting_behind_ : waiting_;
  queue.push_back(std::move(added));
  start_more_locked();
}

void ColdReads::start_more_locked() {
  while (turns_ < turns_max_locked() && !group_running_ && !groups_slot_ && !slot_over_locked()) {
    auto& queue = waiting_.empty() ? waiting_behind_ : waiting_;
    if (queue.empty()) return;
    auto turn = std::move(queue.front());
    queue.pop_front();
    ++turns_;
    go_on_locked(std::move(turn));
  }
}

void ColdReads::go_on_locked(TurnPtr turn) {
  ++reading_;
  threads_.submit([self = shared_from_this(), turn = std::move(turn)] { self->perform(turn); });
}

void ColdReads::note_step_locked(base::Duration took) {
  ++steps_;
  step_time_ = (step_time_ * 3 + took) / 4;
}

std::size_t ColdReads::turns_max_locked() const { return step_time_ >= kSlowStep ? 1 : kTurnsMax; }

bool ColdReads::groups_expected_locked() const {
  return shares_head_ && group_time_ >= kSlowGroup &&
         (group_ || group_running_ || home_.now() - group_began_ < kGroupsExpected);
}

bool ColdReads::takes_turns() const {
  std::lock_guard lock(mutex_);
  return groups_expected_locked();
}

/// A group waits, and the readers have had theirs.
bool ColdReads::slot_over_locked() const { return group_ && steps_ >= kStepsPerSlot; }

void ColdReads::perform(const TurnPtr& turn) {
  auto began = home_.now();
  while (turn->step()) {
    const auto now = home_.now();
    if (park(turn, now - std::exchange(began, now))) return;
  }
  const base::Duration took = home_.now() - began;
  turn->step = nullptr;  // what it captured goes before the caller resumes
  const auto ended = std::exchange(turn->ended, nullptr);
  std::function<void()> begin_group;
  {
    std::lock_guard lock(mutex_);
    note_step_locked(took);
    --reading_;
    --turns_;
    if (turn->kind == Kind::reader) --readers_;
    start_more_locked();
    begin_group = freed_locked();
  }
  if (begin_group) begin_group();
  if (ended) ended();
}

/// True when the turn goes on after a group that waits.
bool ColdReads::park(const TurnPtr& turn, base::Duration took) {
  std::function<void()> begin_group;
  {
    std::lock_guard lock(mutex_);
    note_step_locked(took);
    if (!slot_over_locked()) return false;
    --reading_;
    parked_.push_back(turn);
    begin_group = freed_locked();
  }
  if (begin_group) begin_group();
  return true;
}

/// The group that waits, if nobody reads any more.
std::function<void()> ColdReads::freed_locked() {
  if (reading_ > 0 || !group_) return {};
  begin_group_locked();
  groups_slot_ = true;
  groups_until_ = group_began_ + step_time_ / kGroupsShare;
  return std::exchange(group_, nullptr);
}

void ColdReads::begin_group_locked() {
  group_running_ = true;
  group_began_ = home_.now();
}

void ColdReads::before_group(std::function<void()> begin) {
  {
    std::lock_guard lock(mutex_);
    const bool wait = shares_head_ && reading_ > 0 && group_time_ >= kSlowGroup;
    if (wait) {
      group_ = std::move(begin);
      end_hold_after(kHoldMax, ++holds_);
      return;
    }
    group_began_ = home_.now();
    group_running_ = shares_head_ && group_time_ >= kSlowGroup;
  }
  begin();
}

void ColdReads::after_group() {
  std::lock_guard lock(mutex_);
  const auto now = home_.now();
  group_running_ = false;
  group_time_ = (group_time_ * 3 + (now - group_began_)) / 4;
  if (groups_slot_ && now < groups_until_)
    return end_groups_slot_at(std::min(groups_until_, now + kGroupsGap), ++slots_);
  let_readers_go_on_locked();
}

void ColdReads::let_readers_go_on_locked() {
  groups_slot_ = false;
  steps_ = 0;
  auto parked = std::move(parked_);
  parked_.clear();
  for (auto& turn : parked) go_on_locked(std::move(turn));
  start_more_locked();
}

void ColdReads::end_hold_after(base::Duration span, std::uint64_t hold) {
  home_.post([self = weak_from_this(), &home = home_, span, hold] {
    home.start_timer(home.now() + span, [self, hold] {
      const auto reads = self.lock();
      if (!reads) return;
      std::function<void()> begin;
      {
        std::lock_guard lock(reads->mutex_);
        if (reads->holds_ != hold || !reads->group_) return;
        reads->begin_group_locked();
        begin = std::exchange(reads->group_, nullptr);
      }
      begin();
    });
  });
}

/// No group came in between.
void ColdReads::end_groups_slot_at(base::TimePoint at, std::uint64_t slot) {
  home_.post([self = weak_from_this(), &home = home_, at, slot] {
    home.start_timer(at, [self, slot] {
      const auto reads = self.lock();
      if (!reads) return;
      std::lock_guard lock(reads->mutex_);
      if (reads->slots_ != slot || reads->group_running_ || !reads->groups_slot_) return;
      reads->let_readers_go_on_locked();
    });
  });
}

std::size_t ColdReads::readers() const {
  std::lock_guard lock(mutex_);
  return readers_;
}

}  // namespace mq::storage
