#include "broker/request.h"

#include "broker/connection.h"
#include "broker/worker.h"
#include "protocol/hello.h"

namespace mq::broker {

Request::Request(std::shared_ptr<Connection> connection, net::Frame frame, net::Lease memory)
    : connection_(std::move(connection)), frame_(std::move(frame)), memory_(std::move(memory)) {
  connection_->request_began(is_data());
}

Request::~Request() {
  if (connection_) fail(protocol::WireError::internal, "the request was dropped");
}

bool Request::wants_answer() const noexcept {
  return (frame_.head.flags & protocol::kFrameNoAnswer) == 0;
}

bool Request::is_data() const noexcept {
  const auto key = static_cast<protocol::ApiKey>(frame_.head.api_key);
  return key == protocol::ApiKey::produce || key == protocol::ApiKey::fetch;
}

Worker& Request::worker() const noexcept { return connection_->worker(); }
Core& Request::core() const noexcept { return connection_->worker().core(); }

base::TimePoint Request::deadline(std::uint32_t deadline_ms) const {
  const base::Duration limit = core().limits.request_timeout;
  const base::Duration asked = std::chrono::milliseconds(deadline_ms);
  return worker().runtime().now() + (deadline_ms == 0 ? limit : std::min(asked, limit));
}

base::TimePoint Request::deadline_for_answer(std::uint32_t deadline_ms) const {
  constexpr base::Duration kOnTheWay = std::chrono::milliseconds(500);
  const base::Duration left = deadline(deadline_ms) - worker().runtime().now();
  return worker().runtime().now() + left - std::min(kOnTheWay, left / 10);
}

void Request::release_memory() {
  frame_.body = {};
  frame_.header = {};
  frame_.payload = {};
  memory_.give_back();
}

void Request::answer(std::string header, std::vector<base::SharedBytes> payload,
                     std::shared_ptr<void> held, bool more) {
  if (header.size() > protocol::kHeaderBytesMax) {
    return fail(protocol::WireError::invalid_request,
                fmt::format("the answer's header would have {} bytes, {} are possible; ask for "
                            "fewer topics or partitions at a time",
                            header.size(), protocol::kHeaderBytesMax));
  }
  std::size_t payload_bytes = 0;
  for (const auto& piece : payload) payload_bytes += piece.bytes.size();
  protocol::FrameHead head;
  head.api_key = frame_.head.api_key;
  head.api_version = frame_.head.api_version;
  head.correlation_id = frame_.head.correlation_id;
  head.flags = static_cast<std::uint8_t>(protocol::kFrameResponse |
                                         (more ? protocol::kFrameMoreFollows : 0));
  net::OutgoingFrame frame;
  frame.head_and_header =
      protocol::encode_frame(head, header, static_cast<std::uint32_t>(payload_bytes));
  frame.payload = std::move(payload);
  frame.held = std::move(held);
  // Whoever waits for the records is served before their producer hears of them.
  frame.gather = frame_.head.api_key == static_cast<std::uint16_t>(protocol::ApiKey::produce);
  connection_->send(std::move(frame));
  if (!more) finish_silently();
}

void Request::fail(protocol::WireError error, std::string text) {
  fail(core().status(error, std::move(text)));
}

void Request::fail(protocol::Status status) {
  core().hot.requests_refused.add();
  if (!wants_answer()) {
    connection_->unanswerable_failed(status);
    return finish_silently();
  }
  auto envelope = core().envelope();
  envelope.status = std::move(status);
  answer(protocol::encode(envelope));
}

net::Frame Request::unread() {
  net::Frame frame = frame_;
  finish_silently();
  return frame;
}

void Request::finish_silently() {
  release_memory();
  const auto connection = std::move(connection_);
  connection_ = nullptr;
  connection->request_ended(is_data());
}

}  // namespace mq::broker
