#include "base/real/stop_signals.h"

#include <csignal>

namespace mq::base {

StopSignals::StopSignals(RealRuntime& runtime, std::function<void(int)> fire)
    : signals_(runtime.context(), SIGTERM, SIGINT), fire_(std::move(fire)) {
  std::signal(SIGPIPE, SIG_IGN);
  wait();
}

void StopSignals::cancel() {
  boost::system::error_code ignored;
  signals_.cancel(ignored);
}

void StopSignals::wait() {
  signals_.async_wait([this](const boost::system::error_code& error, int signal) {
    if (error) return;
    fire_(signal);
    wait();
  });
}

}  // namespace mq::base
