#include "base/runtime.h"

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <exception>
#include <memory>

#include "base/check.h"
#include "base/log.h"

namespace mq::base {
namespace {

void log_exception(const std::string& what, std::exception_ptr error) {
  if (!error) return;
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    log_error("runtime", "{} ended with an exception: {}", what, e.what());
  }
}

}  // namespace

asio::awaitable<void> Runtime::sleep_until(TimePoint due) {
  return asio::async_initiate<const asio::use_awaitable_t<>&, void()>(
      [this, due](auto handler) {
        auto slot = asio::get_associated_cancellation_slot(handler);
        auto held = std::make_shared<decltype(handler)>(std::move(handler));
        auto complete = [held] {
          auto executor = asio::get_associated_executor(*held);
          asio::post(executor, std::move(*held));
        };
        const TimerId timer = start_timer(due, complete);
        if (slot.is_connected()) {
          slot.assign([this, timer, waiting = std::weak_ptr<void>(held)](asio::cancellation_type) {
            // The timer owns the handler: if it has fired, there is nothing left to wake.
            auto handler_alive = waiting.lock();
            if (!handler_alive || !cancel_timer(timer)) return;
            auto& still_waiting =
                *std::static_pointer_cast<std::decay_t<decltype(handler)>>(handler_alive);
            auto executor = asio::get_associated_executor(still_waiting);
            asio::post(executor, std::move(still_waiting));
          });
        }
      },
      asio::use_awaitable);
}

void Runtime::post(std::function<void()> work) { asio::post(executor(), std::move(work)); }

void Runtime::spawn(std::string what, asio::awaitable<void> task) {
  asio::co_spawn(executor(), std::move(task), [what = std::move(what)](std::exception_ptr error) {
    log_exception(what, error);
  });
}

TaskGroup::~TaskGroup() { MQ_CHECK(running_ == 0, "{} tasks still run", running_); }

void TaskGroup::spawn(std::string what, asio::awaitable<void> task) {
  ++running_;
  asio::co_spawn(runtime_.executor(), std::move(task),
                 [this, what = std::move(what)](std::exception_ptr error) {
                   log_exception(what, error);
                   ended();
                 });
}

void TaskGroup::ended() {
  if (--running_ > 0 || !when_empty_) return;
  auto wake = std::exchange(when_empty_, nullptr);
  wake();
}

asio::awaitable<void> TaskGroup::wait() {
  return asio::async_initiate<const asio::use_awaitable_t<>&, void()>(
      [this](auto handler) {
        auto held = std::make_shared<decltype(handler)>(std::move(handler));
        auto wake = [held] {
          auto executor = asio::get_associated_executor(*held);
          asio::post(executor, std::move(*held));
        };
        if (running_ == 0) return wake();
        MQ_CHECK(!when_empty_, "two callers wait for one task group");
        when_empty_ = wake;
      },
      asio::use_awaitable);
}

}  // namespace mq::base
