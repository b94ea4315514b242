#include "storage/write_behind.h"

#include <optional>

namespace mq::storage {

WriteBehind::WriteBehind(base::DiskExecutor& threads, base::Counters& counters,
                         std::uint64_t budget, Hooks hooks)
    : threads_(threads),
      budget_(budget),
      hooks_(std::move(hooks)),
      waits_(counters.get("storage_dirty_waits_total")) {}

void WriteBehind::appended(DirtyBytes& log, std::uint64_t bytes) {
  log.appended.fetch_add(bytes, std::memory_order_relaxed);
  const auto before = dirty_.fetch_add(bytes, std::memory_order_relaxed);
  const auto step = budget_ / 8;
  if (before + bytes < budget_ / 2 || before / step == (before + bytes) / step) return;
  if (!asked_.exchange(true)) hooks_.more();
}

void WriteBehind::write(Stride stride) {
  {
    std::lock_guard lock(mutex_);
    queue_.push_back(std::move(stride));
    if (std::exchange(running_, true)) return;
  }
  threads_.submit([self = shared_from_this()] { self->run(); });
}

/// One stride is being written while the next one is begun: the disk has always something to do and
/// never much.
void WriteBehind::run() {
  std::optional<Stride> begun;
  while (true) {
    std::optional<Stride> next;
    {
      std::lock_guard lock(mutex_);
      if (!queue_.empty()) {
        next = std::move(queue_.front());
        queue_.pop_front();
      } else if (!begun) {
        running_ = false;
        return;
      }
    }
    auto* const turns = next && hooks_.turns ? hooks_.turns() : nullptr;
    if (next && turns == nullptr) next->file->start_write_back(next->position, next->bytes);
    if (begun) finish(*begun);
    if (turns != nullptr) return write_in_turn(*turns, *std::move(next));
    begun = std::move(next);
  }
}

/// Alone, and the queue is gone on with afterwards.
void WriteBehind::write_in_turn(base::DiskExecutor& turns, Stride stride) {
  turns.submit([self = shared_from_this(), stride = std::move(stride)] {
    stride.file->start_write_back(stride.position, stride.bytes);
    self->finish(stride);
    self->hooks_.turn_ends();
    self->threads_.submit([self] { self->run(); });
  });
}

void WriteBehind::finish(const Stride& stride) {
  const auto written = stride.file->finish_write_back(stride.position, stride.bytes);
  if (!written) return hooks_.failed(written.error());
  settled(*stride.log, stride.clean);
}

void WriteBehind::settled(DirtyBytes& log, std::uint64_t clean) {
  auto before = log.clean.load();
  while (before < clean && !log.clean.compare_exchange_weak(before, clean)) {
  }
  if (before >= clean) return;
  const auto settled = clean - before;
  const auto dirty = dirty_.fetch_sub(settled) - settled;
  // Some room before anyone goes on, or all would stop again at once.
  if (dirty < budget_ / 8 * 7 && dirty + settled >= budget_ / 8 * 7) wake();
}

void WriteBehind::when_room(base::Runtime& runtime, std::function<void()> call) {
  waits_.add();
  {
    std::lock_guard lock(mutex_);
    if (!ended_ && dirty_.load() >= budget_ / 8 * 7) {
      waiters_.push_back({runtime, std::move(call)});
      return;
    }
  }
  runtime.post(std::move(call));
}

void WriteBehind::wake() {
  std::vector<Waiter> woken;
  {
    std::lock_guard lock(mutex_);
    woken.swap(waiters_);
  }
  for (auto& waiter : woken) waiter.runtime.post(std::move(waiter.call));
}

void WriteBehind::end() {
  {
    std::lock_guard lock(mutex_);
    ended_ = true;
  }
  wake();
}

}  // namespace mq::storage
