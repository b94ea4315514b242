#include "client/shell_callback_thread.h"

#include <csignal>

namespace mq::client {

void CallbackThread::post(std::function<void()> work) {
  std::unique_lock lock(state_->mutex);
  if (state_->stopping) return;
  state_->queue.push_back(std::move(work));
  if (thread_.joinable()) {
    const bool asleep = state_->queue.size() == 1 && !state_->running;
    lock.unlock();  // the woken thread wants it
    if (asleep) state_->work.notify_one();
    return;
  }
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([state = state_] { loop(state); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void CallbackThread::loop(const std::shared_ptr<State>& state) {
  std::deque<std::function<void()>> batch;
  std::unique_lock lock(state->mutex);
  while (true) {
    state->work.wait(lock, [&] { return !state->queue.empty() || state->stopping; });
    if (state->queue.empty()) return;
    batch.swap(state->queue);
    state->running = true;
    lock.unlock();
    while (!batch.empty()) {
      batch.front()();
      batch.pop_front();
    }
    lock.lock();
    state->running = false;
    if (state->queue.empty()) state->idle.notify_all();
  }
}

bool CallbackThread::is_current() const {
  const std::lock_guard lock(state_->mutex);
  return thread_.get_id() == std::this_thread::get_id();
}

bool CallbackThread::wait_idle(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(state_->mutex);
  return state_->idle.wait_until(lock, deadline,
                                 [this] { return state_->queue.empty() && !state_->running; });
}

void CallbackThread::stop() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
    state_->work.notify_all();
  }
  if (!thread_.joinable()) return;
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

}  // namespace mq::client
