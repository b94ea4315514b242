#include "client/shell_io_thread.h"

#include <csignal>

namespace mq::client {
namespace {

/// A few turns of the loop: connections that were closed see it and end.
asio::awaitable<Done> settle(base::Runtime& runtime) {
  constexpr int kTurns = 20;
  for (int i = 0; i < kTurns; ++i) co_await asio::post(runtime.executor(), asio::use_awaitable);
  co_return Done{};
}

std::thread start_quietly(SharedLoop& loop) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread([&loop] { loop.serve(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace

asio::awaitable<Done> done_after(asio::awaitable<void> task) {
  co_await std::move(task);
  co_return Done{};
}

IoThread::IoThread() : network_(runtime_), loop_(runtime_), thread_(start_quietly(loop_)) {}

IoThread::~IoThread() { stop(); }

bool IoThread::enter() {
  const std::lock_guard lock(mutex_);
  if (stopping_) return false;
  ++calls_;
  return true;
}

void IoThread::leave() {
  const std::lock_guard lock(mutex_);
  if (--calls_ == 0) idle_.notify_all();
}

bool IoThread::visit(SharedLoop::Clock::time_point deadline, const std::function<bool()>& done) {
  if (!enter()) return false;
  const bool visited = loop_.visit(deadline, done);
  leave();
  return visited;
}

void IoThread::step_back() {
  const std::unique_lock lock(mutex_, std::try_to_lock);  // stop() joins this thread with it
  if (lock && calls_ == 0) loop_.step_back();
}

void IoThread::stop() {
  call(settle(runtime_));
  std::unique_lock lock(mutex_);
  stopping_ = true;
  idle_.wait(lock, [this] { return calls_ == 0; });
  if (!thread_.joinable()) return;
  loop_.stop();
  thread_.join();
}

}  // namespace mq::client
