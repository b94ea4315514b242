#include "broker/connection.h"

#include "base/log.h"
#include "broker/handlers/handlers.h"
#include "broker/hop.h"
#include "broker/membership.h"
#include "broker/replica_session.h"
#include "protocol/hello.h"

namespace mq::broker {

using protocol::FrameErrc;
using protocol::WireError;

namespace {

/// On the home runtime.
asio::awaitable<void> tell_of_lost(Core& core, model::IsrMember broker) {
  auto* const controller = core.membership->controller();
  if (controller) controller->lost_connection(broker.broker, broker.epoch);
  co_return;
}

}  // namespace

Connection::Connection(Worker& worker, std::unique_ptr<base::Stream> stream)
    : worker_(worker),
      core_(worker.core()),
      stream_(std::move(stream)),
      reader_(*stream_, protocol::kFrameBytesBeforeHello),
      writer_(worker.runtime(), *stream_),
      room_(worker.runtime()),
      opened_at_(worker.runtime().now()),
      last_frame_at_(opened_at_) {
  worker_.connection_made();
  if (core_.workers.size() > 1) {
    affinity_ =
        std::make_unique<WorkerAffinity>(core_.workers.size(), core_.limits.requests_before_move);
  }
  reader_.set_grow_with_bytes(true);
  reader_.set_budget([this](std::size_t bytes) { return take_memory(bytes); });
  reader_.on_frame_progress([this](bool began) {
    frame_began_at_ = began ? worker_.runtime().now() : base::TimePoint::max();
  });
}

Connection::Connection(Worker& worker, MovingConnection moving)
    : Connection(worker, std::move(moving.stream)) {
  affinity_ = nullptr;
  opened_at_ = moving.opened_at;
  last_frame_at_ = moving.last_frame_at;
  reader_.begin_with(base::as_bytes(moving.read_ahead));
  hello(std::move(moving.client));
}

Connection::~Connection() { worker_.connection_gone(); }

asio::awaitable<void> Connection::serve() {
  const auto self = shared_from_this();
  worker_.tasks().spawn("connection writer", write(self));
  const bool greeted = said_hello_ ? true : co_await read_preface();
  if (greeted) co_await read_requests();
  memory_.give_back();
  if (departed_) co_return;
  if (lingering_) co_await linger();
  close();
  while (!writer_ended_) co_await room_.wait();
}

asio::awaitable<bool> Connection::read_preface() {
  constexpr std::size_t kLooksAt = 16;
  std::size_t wanted = 1;
  while (true) {
    const auto filled = co_await reader_.fill(wanted);
    if (!filled) co_return false;
    const auto first = reader_.buffered().first(std::min(kLooksAt, reader_.buffered().size()));
    const auto protocol = protocol::recognise(first);
    if (protocol == protocol::ForeignProtocol::none_yet && first.size() < kLooksAt) {
      wanted = first.size() + 1;
      continue;
    }
    if (protocol != protocol::ForeignProtocol::mq) {
      refuse_foreign(protocol);
      co_return false;
    }
    const auto preface = co_await reader_.read_raw(protocol::kPreface.size());
    co_return preface.has_value();
  }
}

asio::awaitable<void> Connection::read_requests() {
  while (!closed_) {
    if (said_hello_) reader_.set_frame_bytes_max(core_.frame_bytes_max());
    auto frame = co_await reader_.next();
    if (closed_) co_return;
    if (frame) {
      dispatch(std::move(*frame));
    } else if (!frame_failed(frame.error())) {
      co_return;
    }
    if (requests_under_way_ >= core_.limits.requests_in_flight ||
        writer_.queued_bytes() > core_.limits.outbound_bytes) {
      co_await wait_for_room();
    }
    if (moves_to_) {
      const bool left = co_await leave();
      if (left) co_return;
    }
  }
}

void Connection::count_partition(const model::PartitionId& partition) {
  affinity_->count(core_.worker_of(partition).index());
}

void Connection::judge_affinity() {
  if (!affinity_->request_counted()) return;
  if (const auto better = affinity_->better_than(worker_.index()))
    moves_to_ = core_.workers[*better].get();
  affinity_ = nullptr;
}

bool Connection::take_elsewhere(const std::vector<protocol::ReplicaSubscribe>& entries,
                                Request& request) {
  if (!affinity_ || replica_session_ || other_requests_ > 1) return false;
  affinity_ = nullptr;
  WorkerAffinity affinity(core_.workers.size(), 1);
  for (const auto& entry : entries) affinity.count(core_.worker_of(entry.partition).index());
  const auto better = affinity.better_than(worker_.index());
  if (!better) return false;
  moves_to_ = core_.workers[*better].get();
  unread_ = request.unread();
  return true;
}

/// It does not move any more.
void Connection::stay() {
  moves_to_ = nullptr;
  if (unread_) dispatch(*std::exchange(unread_, std::nullopt));
}

/// Between two frames. True if the connection ends here, to go on elsewhere or not at all.
asio::awaitable<bool> Connection::leave() {
  // What is no data request may take long; behind the next frame it is tried again.
  if (other_requests_ > 0) co_return false;
  leaving_ = true;
  wake_waiters();
  const bool rests = co_await come_to_rest();
  leaving_ = false;
  if (closed_) co_return true;
  if (!rests || draining_ || core_.stopping) {
    stay();
    co_return false;
  }
  departed_ = true;
  writer_.finish();
  while (!writer_ended_) co_await room_.wait();
  if (closed_ || draining_ || core_.stopping) {
    departed_ = false;
    close();
  }
  co_return true;
}

/// PRO-3: everything has been answered and written. False: it takes too long, or the end came.
asio::awaitable<bool> Connection::come_to_rest() {
  const auto deadline = worker_.runtime().now() + core_.limits.move_wait;
  while (!closed_ && requests_under_way_ > 0) {
    const bool notified = co_await room_.wait_until(deadline);
    if (!notified) co_return false;
  }
  co_return co_await writer_.wait_below(0, deadline);
}

MovingConnection Connection::depart() {
  MovingConnection moving;
  if (unread_) {
    const auto header = base::as_text(unread_->header);
    moving.read_ahead = protocol::encode_frame(unread_->head, header, 0);
  }
  moving.read_ahead += base::as_text(reader_.buffered());
  moving.client = std::move(client_);
  moving.opened_at = opened_at_;
  moving.last_frame_at = last_frame_at_;
  moving.stream = std::move(stream_);
  closed_ = true;
  return moving;
}

asio::awaitable<void> Connection::wait_for_room() {
  while (!closed_ && requests_under_way_ >= core_.limits.requests_in_flight) co_await room_.wait();
  co_await writer_.wait_below(core_.limits.outbound_bytes);
}

asio::awaitable<bool> Connection::room_for_answer() {
  if (writer_.queued_bytes() <= core_.limits.outbound_bytes) co_return !closed_;
  co_return co_await writer_.wait_below(core_.limits.outbound_bytes);
}

// PRO-1: the reader has checked the size against the limit; here the budget grants it.
asio::awaitable<void> Connection::take_memory(std::size_t bytes) {
  if (!said_hello_ && bytes <= Limits::kHelloBytesFree) co_return;
  auto& budget = said_hello_ ? worker_.request_budget() : worker_.hello_budget();
  if (!budget.try_take(bytes)) {
    // The peer is not to blame for this wait; what has been sent meanwhile is not lost.
    frame_began_at_ = base::TimePoint::max();
    bytes = co_await budget.take(bytes);
    frame_began_at_ = worker_.runtime().now();
  }
  memory_ = net::Lease(budget, bytes);
}

void Connection::dispatch(net::Frame frame) {
  core_.hot.requests_total.add();
  last_frame_at_ = worker_.runtime().now();
  const protocol::FrameHead head = frame.head;
  const Api* api = find_api(head.api_key);
  Request request(shared_from_this(), std::move(frame), std::move(memory_));
  if ((head.flags & ~protocol::kFrameNoAnswer) != 0) {
    return request.fail(WireError::malformed_request, "a request has the flags of an answer");
  }
  if (!api) {
    return request.fail(WireError::unsupported_api,
                        fmt::format("request {} is not known here", head.api_key));
  }
  if (head.api_version < api->versions.min || head.api_version > api->versions.max) {
    return request.fail(WireError::unsupported_version,
                        fmt::format("{} version {} is not known here; versions {} to {} are",
                                    protocol::api_name(head.api_key), head.api_version,
                                    api->versions.min, api->versions.max));
  }
  const bool is_hello = api->versions.key == protocol::ApiKey::hello;
  if (!said_hello_ && !is_hello) {
    return request.fail(WireError::hello_required,
                        fmt::format("{} came before Hello", protocol::api_name(head.api_key)));
  }
  if (!request.wants_answer() && api->versions.key != protocol::ApiKey::produce) {
    return request.fail(WireError::malformed_request,
                        fmt::format("{} always has an answer", protocol::api_name(head.api_key)));
  }
  if (draining_ || core_.stopping)
    return request.fail(WireError::shutting_down, "the broker is stopping");
  api->handler(std::move(request));
}

void Connection::hello(ClientIdentity client) {
  client_ = std::move(client);
  said_hello_ = true;
  reader_.set_grow_with_bytes(false);
}

void Connection::request_began(bool data) noexcept {
  ++requests_under_way_;
  if (!data) ++other_requests_;
}

void Connection::request_ended(bool data) {
  last_frame_at_ = worker_.runtime().now();
  if (!data) --other_requests_;
  // Only a reader that stands still has to be told.
  if (requests_under_way_-- == core_.limits.requests_in_flight || leaving_) room_.notify_all();
}

void Connection::send(net::OutgoingFrame frame) {
  if (!closed_) writer_.push(std::move(frame));
}

asio::awaitable<void> Connection::write(std::shared_ptr<Connection> self) {
  const auto written = co_await writer_.run();
  writer_ended_ = true;
  // A connection that lingers still waits for its peer to have read the refusal.
  const bool stays_open = lingering_ || departed_;
  if (!written || !stays_open) close();
  room_.notify_all();
  (void)self;
}

bool Connection::frame_failed(base::Error error) {
  memory_.give_back();
  if (error.category() != protocol::frame_category()) return false;  // the stream ended
  core_.hot.frames_refused.add();
  switch (static_cast<FrameErrc>(error.value())) {
    case FrameErrc::header_too_large:
      refuse_frame(WireError::frame_too_large,
                   fmt::format("the request's header of {} bytes is larger than {}",
                               reader_.last_head().header_bytes, protocol::kHeaderBytesMax));
      return true;
    case FrameErrc::too_large:
      refuse_frame(
          WireError::frame_too_large,
          fmt::format("the frame of {} bytes is larger than {}", reader_.last_head().frame_bytes,
                      said_hello_ ? core_.frame_bytes_max() : protocol::kFrameBytesBeforeHello));
      break;
    case FrameErrc::malformed:
      refuse_frame(WireError::malformed_request, "the frame is shorter than its header");
      break;
    case FrameErrc::bad_header_crc:
      refuse_frame(WireError::corrupt_frame, "the checksum of the frame's header is wrong");
      break;
    case FrameErrc::unknown_flag:
      refuse_frame(WireError::malformed_request,
                   fmt::format("the frame has flags {:#04x}, of which some are not known",
                               reader_.last_head().flags));
      break;
  }
  lingering_ = true;
  return false;
}

void Connection::refuse_frame(WireError error, std::string text) {
  core_.peer_warnings.warn(worker_.runtime().now(), "frame", fmt::format("{}: {}", name(), text));
  auto envelope = core_.envelope();
  envelope.status = core_.status(error, std::move(text));
  protocol::FrameHead head = reader_.last_head();
  head.flags = protocol::kFrameResponse;
  net::OutgoingFrame frame;
  frame.head_and_header = protocol::encode_frame(head, protocol::encode(envelope), 0);
  send(std::move(frame));
}

void Connection::refuse_foreign(protocol::ForeignProtocol protocol) {
  core_.hot.foreign_protocols.add();
  const auto what = protocol::foreign_protocol_name(protocol);
  core_.peer_warnings.warn(
      worker_.runtime().now(), std::string(what),
      fmt::format("{} does not speak mq's protocol here but {}; closed", peer(), what));
  net::OutgoingFrame answer;
  answer.head_and_header = protocol::foreign_protocol_answer(protocol);
  if (!answer.head_and_header.empty()) send(std::move(answer));
  lingering_ = true;
}

// Closing a socket with unread bytes resets it, and the peer may lose the refusal with it.
asio::awaitable<void> Connection::linger() {
  writer_.finish();
  auto& runtime = worker_.runtime();
  const auto timer = runtime.start_timer(runtime.now() + core_.limits.linger,
                                         [self = shared_from_this()] { self->close(); });
  std::array<std::byte, 1024> ignored;
  const asio::mutable_buffer into(ignored.data(), ignored.size());
  while (!closed_) {
    const auto got = co_await stream_->read_some(std::span(&into, 1));
    if (!got) break;
  }
  runtime.cancel_timer(timer);
}

void Connection::unanswerable_failed(const protocol::Status& status) {
  core_.peer_warnings.warn(
      worker_.runtime().now(), "no answer wanted",
      fmt::format("{}: a request that wants no answer failed ({}: {}); closed", name(),
                  protocol::error_info(status.error()).name, status.text));
  close();
}

void Connection::check_deadlines(base::TimePoint now) {
  if (closed_) return;
  const Limits& limits = core_.limits;
  const auto writing_since = writer_.writing_since();
  if (writing_since != base::TimePoint::max() && now - writing_since > limits.write_timeout)
    return time_out("its answers make no way");
  if (!said_hello_ && now - opened_at_ > limits.hello_timeout)
    return time_out("it has not said Hello");
  if (frame_began_at_ != base::TimePoint::max()) {
    if (now - frame_began_at_ > limits.frame_timeout) time_out("a frame is not complete");
    return;
  }
  if (requests_under_way_ == 0 && writer_.queued_bytes() == 0 &&
      now - last_frame_at_ > limits.idle_timeout) {
    base::log_debug("connection", "{}: idle, closed", name());
    close();
  }
}

void Connection::time_out(std::string_view what) {
  core_.hot.connections_timed_out.add();
  core_.peer_warnings.warn(worker_.runtime().now(), std::string(what),
                           fmt::format("{}: {} in time; closed", name(), what));
  close();
}

std::string Connection::name() const {
  return said_hello_ ? fmt::format("{} (client \"{}\")", peer(), client_.name) : peer();
}

void Connection::close() {
  if (closed_) return;
  closed_ = true;
  writer_.close();
  stream_->close();
  room_.notify_all();
  wake_waiters();
  if (replica_session_) replica_session_->end();
  if (registration_ && !core_.stopping) tell_controller();
}

void Connection::tell_controller() {
  worker_.tasks().spawn("a broker's lost connection",
                        base::run_on(*core_.home, tell_of_lost(core_, *registration_)));
}

ReplicaSession& Connection::replica_session() {
  if (!replica_session_) {
    replica_session_ = std::make_shared<ReplicaSession>(worker_);
    affinity_ = nullptr;  // what is subscribed stays here, and so does the connection
  }
  return *replica_session_;
}

void Connection::drain() {
  draining_ = true;
  wake_waiters();
}

void Connection::finish() { writer_.finish(); }

void Connection::wake_waiters() {
  while (!waiters_.empty()) {
    ConnectionWaiter& waiter = waiters_.front();
    waiters_.pop_front();
    waiter.connection_ending();
  }
}

}  // namespace mq::broker
