#pragma once

#include <utility>

#include "base/real/real_runtime.h"
#include "support/run.h"

namespace mq::testing {

/// Runs coroutines to their end on a runtime of the test's own thread.
class RunLoop {
 public:
  base::RealRuntime& runtime() { return runtime_; }
  template <class T>
  T run(asio::awaitable<T> task) {
    return mq::testing::run(runtime_, std::move(task));
  }
  /// Runs until `condition`, at most 20 s.
  template <class Condition>
  bool eventually(Condition condition) {
    const auto limit = runtime_.now() + std::chrono::seconds(20);
    while (!condition()) {
      if (runtime_.now() > limit) return false;
      run(runtime_.sleep_for(std::chrono::milliseconds(5)));
    }
    return true;
  }

 private:
  base::RealRuntime runtime_;
};

}  // namespace mq::testing
