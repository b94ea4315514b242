#pragma once

/// The few parts of Asio that code outside base/real/ may use, under one short name. Sockets,
/// timers, resolvers and signal sets are not among them: code waits through base/runtime.h and
/// base/network.h.

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace mq {
namespace asio = boost::asio;
}
