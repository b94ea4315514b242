#pragma once

#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "base/network.h"
#include "base/wait_list.h"

namespace mq::testing {

/// A stream whose input the test writes piece by piece (one piece a read at most) and whose output
/// it keeps, write by write.
class ScriptedStream final : public base::Stream {
 public:
  explicit ScriptedStream(base::Runtime& runtime) : changed_(runtime) {}

  asio::awaitable<base::Result<std::size_t>> read_some(
      std::span<const asio::mutable_buffer> into) override {
    while (input_.empty() && !ended_ && !closed_) co_await changed_.wait();
    if (closed_) co_return make_error_code(base::BaseErrc::closed);
    if (input_.empty()) co_return make_error_code(base::BaseErrc::end_of_stream);
    std::string& piece = input_.front();
    std::size_t taken = 0;
    for (const auto& buffer : into) {
      const std::size_t step = std::min(buffer.size(), piece.size() - taken);
      std::memcpy(buffer.data(), piece.data() + taken, step);
      taken += step;
    }
    piece.erase(0, taken);
    if (piece.empty()) input_.pop_front();
    ++reads_;
    co_return taken;
  }

  asio::awaitable<base::Result<void>> write_all(std::span<const asio::const_buffer> from) override {
    std::string text;
    for (const auto& buffer : from)
      text.append(static_cast<const char*>(buffer.data()), buffer.size());
    while (stuck_ && !closed_) co_await changed_.wait();
    if (closed_ || broken_) co_return make_error_code(base::BaseErrc::connection_lost);
    writes_.push_back(std::move(text));
    co_return base::Result<void>{};
  }
  void close() override {
    closed_ = true;
    changed_.notify_all();
  }
  const std::string& peer() const override { return peer_; }

  void feed(std::string piece) {
    if (!piece.empty()) input_.push_back(std::move(piece));
    changed_.notify_all();
  }
  void feed_bytewise(const std::string& text) {
    for (const char c : text) input_.emplace_back(1, c);
    changed_.notify_all();
  }
  void end() {
    ended_ = true;
    changed_.notify_all();
  }
  void set_stuck(bool stuck) {
    stuck_ = stuck;
    changed_.notify_all();
  }
  void break_writes() { broken_ = true; }
  [[nodiscard]] const std::vector<std::string>& writes() const noexcept { return writes_; }
  [[nodiscard]] int reads() const noexcept { return reads_; }
  [[nodiscard]] bool input_left() const noexcept { return !input_.empty(); }

 private:
  std::deque<std::string> input_;
  std::vector<std::string> writes_;
  base::WaitList changed_;
  std::string peer_ = "test";
  int reads_ = 0;
  bool ended_ = false;
  bool closed_ = false;
  bool stuck_ = false;
  bool broken_ = false;
};

}  // namespace mq::testing
