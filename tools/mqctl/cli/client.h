#pragma once

#include <string>

#include "mq/admin.h"
#include "mq/config.h"
#include "mqctl/cli/context.h"

namespace mq::mqctl {

/// What every client object of this program starts from: brokers, time limits, the name in the
/// broker's log. Log lines of the library go to stderr with -v only, since errors come as results.
ClientConfig client_config(const Context& context);

/// Throws Failed; `what` says what did not happen.
[[noreturn]] void throw_client(const Error& error, std::string what, std::string item = {});

/// "cannot connect to localhost:9500".
std::string connect_failed(const Context& context);

Admin connect_admin(const Context& context);

/// The value, or Failed with `what`.
template <class T>
T take(Result<T> result, const std::string& what, const std::string& item = {}) {
  if (!result) throw_client(result.error(), what, item);
  return std::move(*result);
}

}  // namespace mq::mqctl
