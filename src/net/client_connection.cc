#include "net/client_connection.h"

#include <algorithm>
#include <string_view>

#include "base/wait_list.h"

namespace mq::net {
namespace {

using base::Result;

class ConnectionCategory final : public boost::system::error_category {
 public:
  const char* name() const noexcept override { return "mq.connection"; }
  std::string message(int value) const override {
    switch (static_cast<ConnectionErrc>(value)) {
      case ConnectionErrc::not_mq:
        return "the peer is not an mq broker";
      case ConnectionErrc::hello_refused:
        return "the broker refused the connection";
      case ConnectionErrc::protocol_violation:
        return "the peer broke the protocol";
      case ConnectionErrc::answer_too_large:
        return "the answer is larger than 32 MiB; ask for fewer topics at a time";
    }
    return "unknown";
  }
};

/// What a server that is no broker says first, as far as it is worth a name.
std::string foreign_name(std::string_view first) {
  if (first.starts_with("HTTP/")) return "an HTTP server answered";
  if (first.starts_with("SSH-")) return "an SSH server answered";
  if (first.starts_with("\x15\x03")) return "a TLS server answered";
  if (first.starts_with("220 ")) return "a mail or file server answered";
  if (first.starts_with("-ERR")) return "a Redis server answered";
  return "its answer is not in mq's protocol";
}

/// Whether a frame that answers Hello may begin like this.
bool looks_like_hello(base::Bytes first) {
  const auto bytes = base::load_le<std::uint32_t>(first.data());
  const auto api = base::load_le<std::uint16_t>(first.data() + 4);
  const auto flags = std::to_integer<unsigned>(first[7]);
  return bytes <= protocol::kFrameBytesBeforeHello &&
         api == static_cast<std::uint16_t>(protocol::ApiKey::hello) &&
         (flags & protocol::kFrameResponse) != 0;
}

constexpr std::size_t kHelloStartBytes = 8;

}  // namespace

const boost::system::error_category& connection_category() noexcept {
  static const ConnectionCategory category;
  return category;
}

boost::system::error_code make_error_code(ConnectionErrc code) noexcept {
  return {static_cast<int>(code), connection_category()};
}

ClientConnection::ClientConnection(base::Runtime& runtime, std::unique_ptr<base::Stream> stream,
                                   ConnectOptions options)
    : runtime_(runtime),
      options_(std::move(options)),
      stream_(std::move(stream)),
      reader_(*stream_, protocol::kFrameBytesBeforeHello),
      writer_(runtime, *stream_) {}

ClientConnection::~ClientConnection() {
  if (timer_ != 0) runtime_.cancel_timer(timer_);
}

asio::awaitable<ClientConnection::Opened> ClientConnection::open(base::Runtime& runtime,
                                                                 base::Network& network,
                                                                 ConnectOptions options) {
  Opened opened;
  auto stream = co_await network.connect(options.to, options.deadline);
  if (!stream) {
    opened.failure.error = stream.error();
    co_return opened;
  }
  std::shared_ptr<ClientConnection> connection(
      new ClientConnection(runtime, std::move(*stream), std::move(options)));
  if (connection->options_.on_greeting)
    std::exchange(connection->options_.on_greeting, nullptr)(connection);
  opened.failure = co_await connection->greet();
  if (!opened.failure.error) opened.connection = std::move(connection);
  co_return opened;
}

asio::awaitable<ConnectFailure> ClientConnection::greet() {
  ConnectFailure failure;
  const auto self = shared_from_this();
  runtime_.spawn("client connection writer", write_requests());
  runtime_.spawn("client connection reader", read_answers());

  protocol::HelloRequest hello;
  hello.envelope.client_name = options_.client_name;
  hello.client_version = options_.client_version;
  hello.client_instance = options_.client_instance;
  hello.connection_number = options_.connection_number;
  hello.cluster_id = options_.cluster_id;
  ClientRequest request;
  request.header = protocol::encode(hello);
  request.deadline = options_.deadline;
  usable_ = true;
  const auto frames = co_await call(std::move(request));
  if (!frames) {
    failure.error = frames.error();
    failure.detail = refusal_detail_;
    co_return failure;
  }
  const auto answer = protocol::decode_hello_response(frames->front().header);
  if (!answer || frames->size() > 1) {
    failure.error = make_error_code(ConnectionErrc::not_mq);
    failure.detail = "its answer to Hello does not parse";
  } else if (!answer->envelope.status.ok()) {
    failure.error = make_error_code(ConnectionErrc::hello_refused);
    failure.refusal = answer->envelope.status;
  } else {
    hello_ = *answer;
    reader_.set_frame_bytes_max(std::min(
        hello_.frame_bytes_max, protocol::kBatchBytesHardMax + protocol::kFrameSlackBytes));
    opened_at_ = runtime_.now();
    co_return failure;
  }
  end(failure.error);
  co_return failure;
}

bool ClientConnection::send(ClientRequest request, OnAnswer on_answer) {
  if (!usable_) return false;
  Waiting waiting{request.deadline, std::move(on_answer), nullptr};
  push(std::move(request), 0, std::move(waiting));
  return true;
}

bool ClientConnection::send_unanswered(ClientRequest request,
                                       std::function<void(Result<void>)> on_written) {
  if (!usable_) return false;
  Waiting waiting{request.deadline, nullptr, std::move(on_written)};
  push(std::move(request), protocol::kFrameNoAnswer, std::move(waiting));
  return true;
}

void ClientConnection::push(ClientRequest request, std::uint8_t flags, Waiting waiting) {
  const std::uint32_t id = next_id_++;
  protocol::FrameHead head;
  head.api_key = static_cast<std::uint16_t>(request.api);
  head.api_version = request.version;
  head.flags = flags;
  head.correlation_id = id;
  std::uint32_t payload_bytes = 0;
  for (const auto& piece : request.payload)
    payload_bytes += static_cast<std::uint32_t>(piece.bytes.size());

  OutgoingFrame frame;
  frame.head_and_header = protocol::encode_frame(head, request.header, payload_bytes);
  if (id == 1) frame.head_and_header.insert(0, protocol::kPreface);
  frame.payload = std::move(request.payload);
  if (waiting.on_written) frame.written = [this, id] { written(id); };
  watch(waiting.deadline);
  waiting_.emplace(id, std::move(waiting));
  writer_.push(std::move(frame));
}

/// The frames of one answer, as they come.
struct ClientConnection::Call {
  explicit Call(base::Runtime& runtime) : done(runtime) {}

  void add(Result<Frame> frame) {
    const bool last = !frame || (frame->head.flags & protocol::kFrameMoreFollows) == 0;
    if (!frame) {
      error = frame.error();
    } else if (!error) {
      bytes += frame->head.body_bytes();
      frames.push_back(*std::move(frame));
    }
    if (bytes > kAnswerBytesMax) {
      error = make_error_code(ConnectionErrc::answer_too_large);
      frames.clear();
    }
    complete = last;
    if (complete) done.notify_all();
  }

  base::WaitList done;
  bool complete = false;
  base::Error error;
  std::size_t bytes = 0;
  std::vector<Frame> frames;
};

asio::awaitable<Result<std::vector<Frame>>> ClientConnection::call(ClientRequest request) {
  const auto state = std::make_shared<Call>(runtime_);
  const bool sent =
      send(std::move(request), [state](Result<Frame> frame) { state->add(std::move(frame)); });
  if (!sent) co_return base::make_error_code(base::BaseErrc::connection_lost);
  while (!state->complete) co_await state->done.wait();
  if (state->error) co_return state->error;
  co_return std::move(state->frames);
}

asio::awaitable<void> ClientConnection::write_requests() {
  const auto self = shared_from_this();
  const auto ended = co_await writer_.run();
  end(ended ? base::make_error_code(base::BaseErrc::closed) : ended.error());
}

/// Looks at the first bytes before they are taken for a frame, so that another protocol is told by
/// name.
asio::awaitable<base::Error> ClientConnection::recognise_peer() {
  const auto filled = co_await reader_.fill(kHelloStartBytes);
  if (!filled) {
    if (filled.error() == base::BaseErrc::end_of_stream)
      refusal_detail_ = "it closed the connection before it answered";
    co_return filled.error();
  }
  if (looks_like_hello(reader_.buffered())) co_return base::Error{};
  refusal_detail_ = foreign_name(base::as_text(reader_.buffered()));
  co_return make_error_code(ConnectionErrc::not_mq);
}

asio::awaitable<void> ClientConnection::read_answers() {
  const auto self = shared_from_this();
  base::Error error = co_await recognise_peer();
  while (!error && !ended_) {
    auto frame = co_await reader_.next();
    if (!frame) {
      error = frame.error();
      if (error.category() == protocol::frame_category())
        error = make_error_code(ConnectionErrc::protocol_violation);
    } else if (!ended_) {
      answer(std::move(*frame));
    }
  }
  end(error);
}

void ClientConnection::answer(Frame frame) {
  const auto found = waiting_.find(frame.head.correlation_id);
  if ((frame.head.flags & protocol::kFrameResponse) == 0 || found == waiting_.end() ||
      !found->second.on_answer) {
    return end(make_error_code(ConnectionErrc::protocol_violation));
  }
  if ((frame.head.flags & protocol::kFrameMoreFollows) != 0) {
    const OnAnswer call = found->second.on_answer;  // the call may end this connection
    return call(std::move(frame));
  }
  const Waiting done = std::move(found->second);
  waiting_.erase(found);
  done.on_answer(std::move(frame));
}

void ClientConnection::written(std::uint32_t id) {
  const auto found = waiting_.find(id);
  if (found == waiting_.end()) return;
  const Waiting done = std::move(found->second);
  waiting_.erase(found);
  done.on_written(Result<void>{});
}

void ClientConnection::watch(base::TimePoint deadline) {
  if (deadline >= timer_due_) return;
  if (timer_ != 0) runtime_.cancel_timer(timer_);
  timer_due_ = deadline;
  timer_ = runtime_.start_timer(deadline, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->check_deadlines();
  });
}

void ClientConnection::check_deadlines() {
  timer_ = 0;
  timer_due_ = base::TimePoint::max();
  const base::TimePoint now = runtime_.now();
  base::TimePoint next = base::TimePoint::max();
  std::vector<std::uint32_t> late;
  for (const auto& [id, waiting] : waiting_) {
    if (waiting.deadline <= now) {
      late.push_back(id);
    } else {
      next = std::min(next, waiting.deadline);
    }
  }
  if (late.empty()) return watch(next);
  std::ranges::sort(late);
  for (const std::uint32_t id : late) {
    const Waiting done = std::move(waiting_.at(id));
    waiting_.erase(id);
    if (done.on_answer) done.on_answer(base::make_error_code(base::BaseErrc::timed_out));
    if (done.on_written) done.on_written(base::make_error_code(base::BaseErrc::timed_out));
  }
  end(base::BaseErrc::timed_out);
}

void ClientConnection::end(base::Error error) {
  if (ended_) return;
  const auto self = shared_from_this();
  ended_ = true;
  usable_ = false;
  stream_->close();
  writer_.close();
  if (timer_ != 0) runtime_.cancel_timer(std::exchange(timer_, 0));
  timer_due_ = base::TimePoint::max();
  // In the order sent, so that whoever sends again does it in order.
  std::vector<std::pair<std::uint32_t, Waiting>> left(std::make_move_iterator(waiting_.begin()),
                                                      std::make_move_iterator(waiting_.end()));
  waiting_.clear();
  std::ranges::sort(left, {}, [](const auto& entry) { return entry.first; });
  const base::Error told =
      error == base::BaseErrc::timed_out ? make_error_code(base::BaseErrc::connection_lost) : error;
  for (auto& [id, waiting] : left) {
    if (waiting.on_answer) waiting.on_answer(told);
    if (waiting.on_written) waiting.on_written(told);
  }
  if (on_end_) std::exchange(on_end_, nullptr)(error);
}

}  // namespace mq::net
