#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/wait_list.h"

namespace mq::client {

/// Runs tasks side by side on one runtime and returns all outcomes, in the order of the tasks. Each
/// task has a deadline of its own.
template <class T>
class Gather {
 public:
  static asio::awaitable<std::vector<T>> all(base::Runtime& runtime, base::TaskGroup& tasks,
                                             std::vector<asio::awaitable<T>> work) {
    const auto state = std::make_shared<Gather>(runtime, work.size());
    for (std::size_t i = 0; i < work.size(); ++i)
      tasks.spawn("gather", run(state, i, std::move(work[i])));
    while (state->left_ > 0) (void)co_await state->changed_.wait();
    std::vector<T> outcomes;
    outcomes.reserve(state->outcomes_.size());
    for (auto& outcome : state->outcomes_) outcomes.push_back(std::move(*outcome));
    co_return outcomes;
  }

  Gather(base::Runtime& runtime, std::size_t count)
      : changed_(runtime), outcomes_(count), left_(count) {}

 private:
  static asio::awaitable<void> run(std::shared_ptr<Gather> state, std::size_t at,
                                   asio::awaitable<T> work) {
    T outcome = co_await std::move(work);
    state->outcomes_[at] = std::move(outcome);
    if (--state->left_ == 0) state->changed_.notify_all();
  }

  base::WaitList changed_;
  std::vector<std::optional<T>> outcomes_;
  std::size_t left_;
};

}  // namespace mq::client
