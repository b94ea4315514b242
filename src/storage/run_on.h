#pragma once

#include "base/runtime.h"

namespace mq::storage {

/// Runs `task` on another runtime and waits for it here.
template <class T>
asio::awaitable<T> run_on(base::Runtime& runtime, asio::awaitable<T> task) {
  co_return co_await asio::co_spawn(runtime.executor(), std::move(task), asio::use_awaitable);
}

}  // namespace mq::storage
