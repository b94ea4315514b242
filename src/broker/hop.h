#pragma once

#include "base/run_on.h"

namespace mq::broker {

/// Runs `task` (on the caller's runtime) and returns whether it ended by `deadline`. If it did not
/// it goes on by itself: what it refers to has to stay alive.
asio::awaitable<bool> ends_by(base::Runtime& runtime, base::TimePoint deadline,
                              asio::awaitable<void> task);

}  // namespace mq::broker
