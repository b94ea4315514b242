#pragma once

#include <memory>
#include <string>
#include <vector>

#include "net/frame_stream.h"
#include "net/memory_budget.h"
#include "protocol/status.h"

namespace mq::broker {

class Connection;
class Worker;
struct Core;

/// One request from its arrival to its answer: the frame, the memory taken for it and the
/// connection it came on. Handlers own it and pass it on; it stays on its connection's worker. A
/// request that goes away unanswered is answered with an internal error.
class Request {
 public:
  Request(std::shared_ptr<Connection> connection, net::Frame frame, net::Lease memory);
  Request(Request&&) noexcept = default;
  Request& operator=(Request&&) = delete;
  ~Request();

  [[nodiscard]] const protocol::FrameHead& head() const noexcept { return frame_.head; }
  [[nodiscard]] base::Bytes header() const noexcept { return frame_.header; }
  [[nodiscard]] base::MutableBytes payload() const noexcept { return frame_.payload; }
  [[nodiscard]] const base::Buffer& body() const noexcept { return frame_.body; }
  [[nodiscard]] bool wants_answer() const noexcept;
  /// Produce or Fetch.
  [[nodiscard]] bool is_data() const noexcept;
  [[nodiscard]] Connection& connection() const noexcept { return *connection_; }
  [[nodiscard]] Worker& worker() const noexcept;
  [[nodiscard]] Core& core() const noexcept;
  /// When the caller stops waiting, or the broker does: `deadline_ms` from now, at most the
  /// broker's own limit.
  [[nodiscard]] base::TimePoint deadline(std::uint32_t deadline_ms) const;
  /// A little before that: so that "not done yet" still reaches a caller who waits no longer.
  [[nodiscard]] base::TimePoint deadline_for_answer(std::uint32_t deadline_ms) const;

  /// The frame has been read and acted upon: its bytes and their share of the budget go.
  void release_memory();

  /// The answer, or with `more` a part of it. `held` stays alive until the frame is written.
  void answer(std::string header, std::vector<base::SharedBytes> payload = {},
              std::shared_ptr<void> held = nullptr, bool more = false);
  /// An answer that is only a status. A request that wants no answer closes its connection instead,
  /// after one log line (PRO-2).
  void fail(protocol::WireError error, std::string text);
  void fail(protocol::Status status);
  /// Done without an answer: acks=none.
  void finish_silently();
  /// The frame as it came, as if it had not been read yet.
  [[nodiscard]] net::Frame unread();

 private:
  std::shared_ptr<Connection> connection_;  // null once answered
  net::Frame frame_;
  net::Lease memory_;
};

}  // namespace mq::broker
