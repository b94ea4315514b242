#pragma once

#include <boost/asio/this_coro.hpp>

#include "base/runtime.h"

namespace mq::broker {

/// Runs `task` on the runtime `there` and resumes the caller on its own: one message each way, none
/// when it is there already. The task has not been started yet.
template <class T>
asio::awaitable<T> run_on(base::Runtime& there, asio::awaitable<T> task) {
  const auto here = co_await asio::this_coro::executor;
  if (here == there.executor()) co_return co_await std::move(task);
  co_return co_await asio::co_spawn(there.executor(), std::move(task), asio::use_awaitable);
}

/// Runs `task` (on the caller's runtime) and returns whether it ended by `deadline`. If it did not
/// it goes on by itself: what it refers to has to stay alive.
asio::awaitable<bool> ends_by(base::Runtime& runtime, base::TimePoint deadline,
                              asio::awaitable<void> task);

}  // namespace mq::broker
