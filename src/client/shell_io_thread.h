#pragma once

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "base/real/asio_network.h"
#include "base/real/real_runtime.h"
#include "client/shell_shared_loop.h"

namespace mq::client {

/// The one I/O thread of a client object, with its runtime and network. All signals are blocked in
/// it: they are the application's. While an application's thread waits in visit(), that thread does
/// the I/O thread's work.
class IoThread {
 public:
  IoThread();
  ~IoThread();  ///< stop()
  IoThread(const IoThread&) = delete;
  IoThread& operator=(const IoThread&) = delete;

  base::RealRuntime& runtime() noexcept { return runtime_; }
  base::Network& network() noexcept { return network_; }

  /// Runs a coroutine on the I/O thread and blocks until it ends. Nothing, and the coroutine is not
  /// run, after stop(). From any thread but this one.
  template <class T>
  std::optional<T> call(asio::awaitable<T> task) {
    if (!enter()) return std::nullopt;
    const auto slot = std::make_shared<Slot<T>>();
    runtime_.spawn("client call", run_into(std::move(task), slot));
    loop_.hurry();
    auto value = slot->wait();
    leave();
    return value;
  }
  /// SharedLoop::visit(); false after stop() too.
  bool visit(SharedLoop::Clock::time_point deadline, const std::function<bool()>& done);
  /// SharedLoop::step_back(), unless a call is in progress.
  void step_back();
  SharedLoop& loop() noexcept { return loop_; }
  /// Waits for calls and visits in progress, lets loose ends of connections run out, ends the
  /// thread. Whoever calls it has told the core to stop, so that the calls end.
  void stop();

 private:
  template <class T>
  struct Slot {
    std::mutex mutex;  // guards value and error
    std::condition_variable ready;
    std::optional<T> value;
    std::exception_ptr error;

    std::optional<T> wait() {
      std::unique_lock lock(mutex);
      ready.wait(lock, [this] { return value || error; });
      if (error) std::rethrow_exception(error);
      return std::move(value);
    }
  };
  template <class T>
  static asio::awaitable<void> run_into(asio::awaitable<T> task, std::shared_ptr<Slot<T>> slot) {
    std::optional<T> value;
    std::exception_ptr error;
    try {
      value.emplace(co_await std::move(task));
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard lock(slot->mutex);
    slot->value = std::move(value);
    slot->error = error;
    slot->ready.notify_all();
  }
  bool enter();
  void leave();

  base::RealRuntime runtime_;
  base::AsioNetwork network_;
  SharedLoop loop_;
  std::mutex mutex_;  // guards calls_, stopping_ and joining the thread
  std::condition_variable idle_;
  std::size_t calls_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

/// For coroutines without a value.
struct Done {};
asio::awaitable<Done> done_after(asio::awaitable<void> task);

}  // namespace mq::client
