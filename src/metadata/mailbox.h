#pragma once

#include <functional>
#include <memory>
#include <mutex>

#include "base/runtime.h"

namespace mq::metadata {

/// Where the threads of a library leave work for the runtime that owns it. Shared with those
/// threads; after close() nothing is taken and nothing runs any more, so that a thread which
/// outlives the owner harms nobody.
class Mailbox : public std::enable_shared_from_this<Mailbox> {
 public:
  explicit Mailbox(base::Runtime& runtime) : runtime_(runtime) {}
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  /// Any thread. `work` runs on the runtime, or never.
  void post(std::function<void()> work);
  /// On the runtime's thread.
  void close();

 private:
  [[nodiscard]] bool open();

  base::Runtime& runtime_;
  std::mutex mutex_;  // guards open_, and the runtime from being used after close()
  bool open_ = true;
};

}  // namespace mq::metadata
