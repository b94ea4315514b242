#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "base/wait_list.h"
#include "client/core/request.h"

namespace mq::client {

/// After this silence of one broker another one is asked as well.
inline constexpr std::chrono::milliseconds kAskAnotherAfter{1000};

/// A question that every broker can answer, put to one of them: a stopped or frozen one delays it
/// by a second at most, while there are others.
///
/// The first success is the answer. Somebody else is asked when a broker has been silent for a
/// second, and at once when it failed in a way that may not be so elsewhere. A late answer is
/// dropped; its request keeps its deadline, so a slow broker loses no connection by this. `tasks`
/// are waited for after the pool has stopped.
template <class Response>
class AskAny {
 public:
  using Make = std::function<net::ClientRequest()>;
  using Decode = base::Result<Response> (*)(base::Bytes);

  static asio::awaitable<Result<Response>> ask(base::Runtime& runtime, ConnectionPool& pool,
                                               base::TaskGroup& tasks, Make make, Decode decode,
                                               base::TimePoint deadline) {
    // Shared with requests that are answered after this has ended.
    const auto state = std::make_shared<AskAny>(runtime, std::move(make), decode, deadline);
    int lost_idle = 0;
    base::TimePoint another_at = base::TimePoint::min();
    while (true) {
      const bool begun = another_at != base::TimePoint::min();
      if (state->answer_) co_return std::move(*state->answer_);
      if (begun && state->under_way_ == 0) {
        // A connection that was closed while it was idle says so only when it is used.
        const bool closed_idle = state->error_->code == Errc::connection_lost && lost_idle++ < 2;
        if (closed_idle) state->asked_.clear();
        const bool elsewhere = state->error_->retriable && pool.has_other(state->asked_);
        if (state->error_->code == Errc::closed || runtime.now() >= deadline ||
            (!closed_idle && !elsewhere)) {
          co_return *state->error_;
        }
        another_at = runtime.now();
      }
      if (!begun || runtime.now() >= another_at) {
        // Whoever still looks for a broker tries all addresses already.
        if (!begun || (!state->looking_ && pool.has_other(state->asked_))) {
          ++state->under_way_;
          tasks.spawn("ask", ask_one(state, pool));
        }
        another_at = runtime.now() + kAskAnotherAfter;
        continue;
      }
      (void)co_await state->changed_.wait_until(std::min(another_at, deadline));
      if (runtime.now() >= deadline && !state->answer_ && state->under_way_ > 0)
        (void)co_await state->changed_.wait_until(deadline + kAskAnotherAfter);
    }
  }

  AskAny(base::Runtime& runtime, Make make, Decode decode, base::TimePoint deadline)
      : make_(std::move(make)), decode_(decode), deadline_(deadline), changed_(runtime) {}

 private:
  static asio::awaitable<void> ask_one(std::shared_ptr<AskAny> state, ConnectionPool& pool) {
    const std::set<std::int32_t> except = state->asked_;
    state->looking_ = true;
    auto connection = co_await pool.any(state->deadline_, except);
    state->looking_ = false;
    if (!connection) {
      state->ended(connection.error());
      co_return;
    }
    state->asked_.insert((*connection)->hello().broker_id);
    net::ClientRequest message = state->make_();
    message.deadline = state->deadline_;
    auto answer = co_await exchange(*connection, std::move(message), state->decode_);
    state->ended(std::move(answer));
  }

  void ended(Result<Response> outcome) {
    --under_way_;
    if (!outcome) {
      error_ = outcome.error();
    } else if (!answer_) {
      answer_ = std::move(outcome);
    }
    changed_.notify_all();
  }

  Make make_;
  Decode decode_;
  base::TimePoint deadline_;
  base::WaitList changed_;
  std::set<std::int32_t> asked_;
  bool looking_ = false;  ///< somebody waits for a connection
  int under_way_ = 0;
  std::optional<Result<Response>> answer_;
  std::optional<Error> error_;
};

}  // namespace mq::client
