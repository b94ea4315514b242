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

/// For the create() of a client object.
[[noreturn]] void throw_not_connected(const Context& context, const Error& error);

template <class T>
T connected(const Context& context, Result<T> created) {
  if (!created) throw_not_connected(context, created.error());
  return std::move(*created);
}

Admin connect_admin(const Context& context);

/// The value, or Failed with `what`.
template <class T>
T take(Result<T> result, const std::string& what, const std::string& item = {}) {
  if (!result) throw_client(result.error(), what, item);
  return std::move(*result);
}

}  // namespace mq::mqctl
