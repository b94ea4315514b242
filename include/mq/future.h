#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <coroutine>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "mq/config.h"
#include "mq/result.h"

namespace mq {
inline namespace v1 {

namespace detail {

/// One result on its way from the client to whoever asked. `run` brings a continuation to the
/// callback thread.
template <class T>
class FutureState {
 public:
  explicit FutureState(std::function<void(std::function<void()>)> run) : run_(std::move(run)) {}

  void set(Result<T> result) {
    std::function<void(Result<T>)> next;
    {
      const std::lock_guard lock(mutex_);
      if (!next_) {
        result_.emplace(std::move(result));
        ready_.notify_all();
        return;
      }
      next = std::move(next_);
    }
    dispatch(std::move(next), std::move(result));
  }
  void then(std::function<void(Result<T>)> next) {
    std::optional<Result<T>> result;
    {
      const std::lock_guard lock(mutex_);
      if (!result_) {
        next_ = std::move(next);
        return;
      }
      result = std::move(result_);
    }
    dispatch(std::move(next), std::move(*result));
  }
  bool wait_for(std::optional<Duration> duration) {
    std::unique_lock lock(mutex_);
    const auto there = [this] { return result_.has_value(); };
    constexpr Duration kForEver = std::chrono::hours(24 * 365 * 100);  // longer cannot be added
    if (duration) return ready_.wait_for(lock, (std::min)(*duration, kForEver), there);
    ready_.wait(lock, there);
    return true;
  }
  Result<T> take() {
    const std::lock_guard lock(mutex_);
    return std::move(*result_);
  }

 private:
  void dispatch(std::function<void(Result<T>)> next, Result<T> result) {
    run_([next = std::move(next), result = std::move(result)]() mutable {
      next(std::move(result));
    });
  }

  std::function<void(std::function<void()>)> run_;
  std::mutex mutex_;  // guards result_ and next_
  std::condition_variable ready_;
  std::optional<Result<T>> result_;
  std::function<void(Result<T>)> next_;
};

}  // namespace detail

/// The result of something under way; move-only, used once. get() blocks the calling thread, which
/// may be the callback thread. then() and co_await go on in the client's callback thread. Dropping
/// a future changes nothing: the operation goes on.
template <class T>
class [[nodiscard]] Future {
 public:
  explicit Future(std::shared_ptr<detail::FutureState<T>> state) : state_(std::move(state)) {}
  Future(Future&&) noexcept = default;
  Future& operator=(Future&&) noexcept = default;

  Result<T> get() && {
    state_->wait_for(std::nullopt);
    return state_->take();
  }
  /// Nothing when the time is over first; the future can be asked again.
  std::optional<Result<T>> get_for(Duration duration) && {
    if (!state_->wait_for(duration)) return std::nullopt;
    return state_->take();
  }
  void then(std::function<void(Result<T>)> next) && { state_->then(std::move(next)); }

  auto operator co_await() && {
    struct Awaiter {
      std::shared_ptr<detail::FutureState<T>> state;
      std::optional<Result<T>> result;
      bool await_ready() const noexcept { return false; }
      void await_suspend(std::coroutine_handle<> waiting) {
        state->then([this, waiting](Result<T> value) {
          result.emplace(std::move(value));
          waiting.resume();
        });
      }
      Result<T> await_resume() { return std::move(*result); }
    };
    return Awaiter{std::move(state_), std::nullopt};
  }

 private:
  std::shared_ptr<detail::FutureState<T>> state_;
};

}  // namespace v1
}  // namespace mq
