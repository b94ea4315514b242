#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace mq::client {

/// Where the application's functions run: one thread, started with the first piece of work.
/// Thread-safe.
class CallbackThread {
 public:
  CallbackThread() : state_(std::make_shared<State>()) {}
  ~CallbackThread() { stop(); }
  CallbackThread(const CallbackThread&) = delete;
  CallbackThread& operator=(const CallbackThread&) = delete;

  /// Runs after everything posted before it. Work must not throw. Ignored after stop().
  void post(std::function<void()> work);
  [[nodiscard]] bool is_current() const;
  /// True when all that was posted before has run; false at `deadline`.
  bool wait_idle(std::chrono::steady_clock::time_point deadline);
  /// Runs what is queued, then ends the thread. On the callback thread itself: the thread ends by
  /// itself later.
  void stop();

 private:
  struct State {
    std::mutex mutex;  // guards everything below
    std::condition_variable work;
    std::condition_variable idle;
    std::deque<std::function<void()>> queue;
    bool running = false;  // a piece of work is running
    bool stopping = false;
  };
  static void loop(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace mq::client
