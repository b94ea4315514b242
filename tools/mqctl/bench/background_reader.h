#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>

#include "mq/consumer.h"
#include "mqctl/cli/context.h"

namespace mq::mqctl {

/// Reads a topic from its start, as fast as it can, in a thread of its own: what a benchmark of
/// producers has going on beside it. Ends at the topic's end as it was when it began, or with
/// stop().
class BackgroundReader {
 public:
  struct Got {
    std::uint64_t records = 0;
    std::uint64_t bytes = 0;  ///< of keys and values
    std::chrono::nanoseconds took{};
    std::optional<Error> error;
  };

  /// Throws Failed when it cannot begin.
  BackgroundReader(const Context& context, const std::string& topic);
  ~BackgroundReader() { static_cast<void>(stop()); }
  BackgroundReader(const BackgroundReader&) = delete;
  BackgroundReader& operator=(const BackgroundReader&) = delete;

  Got stop();

 private:
  void read();

  Consumer consumer_;
  std::uint64_t records_max_ = 0;
  std::atomic<bool> stopping_{false};
  Got got_;  // the thread's until it has ended
  std::thread thread_;
};

}  // namespace mq::mqctl
