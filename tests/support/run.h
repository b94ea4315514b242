#pragma once

#include <boost/asio/co_spawn.hpp>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <variant>

#include "base/real/real_runtime.h"
#include "support/simulator.h"

namespace mq::testing {

/// What a coroutine under test left behind. Shared, so that one that never ends may outlive run().
template <class T>
struct RunOutcome {
  std::optional<T> value;
  std::exception_ptr error;
};

template <class T>
T take_outcome(RunOutcome<T>& outcome) {
  if (outcome.error) std::rethrow_exception(outcome.error);
  if (!outcome.value) throw std::runtime_error("the coroutine under test did not end in time");
  return std::move(*outcome.value);
}

/// Through a coroutine of its own, since Asio wants a default value for results.
template <class T>
asio::awaitable<void> store_outcome(asio::awaitable<T> task,
                                    std::shared_ptr<RunOutcome<T>> outcome) {
  T value = co_await std::move(task);
  outcome->value.emplace(std::move(value));
}

template <class T, class Done>
std::shared_ptr<RunOutcome<T>> start_for_outcome(const asio::any_io_executor& executor,
                                                 asio::awaitable<T> task, Done done) {
  auto outcome = std::make_shared<RunOutcome<T>>();
  asio::co_spawn(executor, store_outcome(std::move(task), outcome),
                 [outcome, done](std::exception_ptr error) mutable {
                   outcome->error = error;
                   done();
                 });
  return outcome;
}

template <class Done>
std::shared_ptr<RunOutcome<std::monostate>> start_for_outcome(const asio::any_io_executor& executor,
                                                              asio::awaitable<void> task,
                                                              Done done) {
  auto outcome = std::make_shared<RunOutcome<std::monostate>>();
  asio::co_spawn(executor, std::move(task), [outcome, done](std::exception_ptr error) mutable {
    outcome->error = error;
    outcome->value.emplace();
    done();
  });
  return outcome;
}

/// Runs `task` in the simulated world until it ends and returns what it returned; throws what it
/// threw, or when `limit` of simulated time did not suffice.
template <class T>
T run(Simulator& simulator, asio::awaitable<T> task,
      base::Duration limit = std::chrono::minutes(10)) {
  const auto outcome = start_for_outcome(simulator.executor(), std::move(task), [] {});
  simulator.run_until([&] { return outcome->value.has_value() || outcome->error != nullptr; },
                      limit);
  if constexpr (std::is_void_v<T>) {
    take_outcome(*outcome);
  } else {
    return take_outcome(*outcome);
  }
}

/// The same on a real runtime, in this thread, within `limit` of real time.
template <class T>
T run(base::RealRuntime& runtime, asio::awaitable<T> task,
      base::Duration limit = std::chrono::seconds(20)) {
  const auto outcome =
      start_for_outcome(runtime.executor(), std::move(task), [&runtime] { runtime.stop(); });
  const auto alarm = runtime.start_timer(runtime.now() + limit, [&runtime] { runtime.stop(); });
  runtime.context().restart();
  runtime.run();
  runtime.cancel_timer(alarm);
  if constexpr (std::is_void_v<T>) {
    take_outcome(*outcome);
  } else {
    return take_outcome(*outcome);
  }
}

}  // namespace mq::testing
