#pragma once

#include <boost/asio/this_coro.hpp>
#include <utility>

#include "base/runtime.h"

namespace mq::base {

/// Runs `task` on the runtime `there` and resumes the caller on its own: one message each way, none
/// when it is there already. The task has not been started yet.
template <class T>
asio::awaitable<T> run_on(Runtime& there, asio::awaitable<T> task) {
  const auto here = co_await asio::this_coro::executor;
  if (here == there.executor()) co_return co_await std::move(task);
  co_return co_await asio::co_spawn(there.executor(), std::move(task), asio::use_awaitable);
}

}  // namespace mq::base
