#pragma once

namespace mq::client {

/// Work that may ask for itself while it runs (a callback it makes calls back): then it runs once
/// more afterwards, never inside itself. On one runtime.
class Rerun {
 public:
  template <class Work>
  void run(Work&& work) {
    if (running_) {
      again_ = true;
      return;
    }
    running_ = true;
    do {
      again_ = false;
      work();
    } while (again_);
    running_ = false;
  }

 private:
  bool running_ = false;
  bool again_ = false;
};

}  // namespace mq::client
