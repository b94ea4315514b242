#pragma once

#include <functional>

namespace mq::metadata {

/// Runs `work` on a thread of its own that nobody waits for: calls that nothing bounds, such as
/// asking a name server. False when there is no thread to be had.
bool run_detached(std::function<void()> work);

}  // namespace mq::metadata
