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

 private:
  base::RealRuntime runtime_;
};

}  // namespace mq::testing
