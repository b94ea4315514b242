#pragma once

#include <boost/asio/signal_set.hpp>
#include <functional>

#include "base/real/real_runtime.h"

namespace mq::base {

/// SIGTERM and SIGINT, handed to a runtime; SIGPIPE is ignored from then on. One per process.
class StopSignals {
 public:
  /// `fire` is called on the runtime's thread for every signal that comes.
  StopSignals(RealRuntime& runtime, std::function<void(int signal)> fire);
  /// Lets go of the runtime, so that it can be destroyed. On its thread, or after it has stopped.
  void cancel();

 private:
  void wait();

  asio::signal_set signals_;
  std::function<void(int)> fire_;
};

}  // namespace mq::base
