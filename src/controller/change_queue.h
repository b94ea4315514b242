#pragma once

#include <cstdint>

#include "base/wait_list.h"

namespace mq::controller {

/// Lets one change at a time through, in the order of arrival. Same thread only.
class ChangeQueue {
 public:
  explicit ChangeQueue(base::Runtime& runtime) : turns_(runtime) {}

  /// Held while a change runs; the next one starts when it goes.
  class Turn {
   public:
    Turn() = default;  ///< of nothing
    explicit Turn(ChangeQueue& queue) : queue_(&queue) {}
    Turn(Turn&& other) noexcept : queue_(std::exchange(other.queue_, nullptr)) {}
    Turn& operator=(Turn&&) = delete;
    ~Turn();

   private:
    ChangeQueue* queue_ = nullptr;
  };

  asio::awaitable<Turn> wait_for_turn();
  /// Changes that run or wait.
  [[nodiscard]] std::uint64_t length() const noexcept { return next_ticket_ - served_; }

 private:
  std::uint64_t next_ticket_ = 0;
  std::uint64_t served_ = 0;
  base::WaitList turns_;
};

}  // namespace mq::controller
