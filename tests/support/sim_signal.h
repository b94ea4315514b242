#pragma once

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <functional>
#include <memory>

#include "base/asio.h"

namespace mq::testing {

/// Lets one coroutine wait until it is told that something changed. Cancelling the wait ends it
/// early; the waiter looks at its condition again either way.
class SimSignal {
 public:
  asio::awaitable<void> wait() {
    return asio::async_initiate<const asio::use_awaitable_t<>&, void()>(
        [state = state_](auto handler) {
          auto slot = asio::get_associated_cancellation_slot(handler);
          auto held = std::make_shared<decltype(handler)>(std::move(handler));
          state->resume = [held] {
            auto executor = asio::get_associated_executor(*held);
            asio::post(executor, std::move(*held));
          };
          const auto number = ++state->number;
          if (slot.is_connected()) {
            slot.assign([weak = std::weak_ptr(state), number](asio::cancellation_type) {
              const auto alive = weak.lock();
              if (alive && alive->number == number) alive->wake();
            });
          }
        },
        asio::use_awaitable);
  }
  void notify() { state_->wake(); }

 private:
  struct State {
    void wake() {
      if (auto call = std::exchange(resume, nullptr)) call();
    }
    std::function<void()> resume;
    std::uint64_t number = 0;  // of the wait that `resume` belongs to
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace mq::testing
