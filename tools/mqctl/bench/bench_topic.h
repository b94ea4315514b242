#pragma once

#include <string>

#include "mq/admin.h"
#include "mqctl/bench/bench_options.h"

namespace mq::mqctl {

/// The topic of a benchmark: the one that was named, or one of its own that its destructor deletes.
class BenchTopic {
 public:
  /// Throws Failed when it cannot be made.
  BenchTopic(const Context& context, Admin& admin, const BenchOptions& options);
  ~BenchTopic();
  BenchTopic(const BenchTopic&) = delete;
  BenchTopic& operator=(const BenchTopic&) = delete;
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] bool own() const noexcept { return own_; }

 private:
  const Context& context_;
  Admin& admin_;
  std::string name_;
  bool own_ = false;
};

/// CPU seconds so far: of this process, and of all brokers as they report it.
struct CpuSeconds {
  double client = 0;
  double brokers = 0;
};
/// Throws Failed when a broker cannot be asked.
CpuSeconds cpu_now(Admin& admin);

}  // namespace mq::mqctl
