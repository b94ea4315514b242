#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/network.h"
#include "net/frame_stream.h"
#include "protocol/hello.h"

namespace mq::net {

enum class ConnectionErrc {
  not_mq = 1,          ///< the peer answers, but not as a broker does
  hello_refused,       ///< the broker's status says why
  protocol_violation,  ///< an answer to nothing, or one that does not parse
  answer_too_large,    ///< its frames have more than ClientConnection::kAnswerBytesMax together
};
const boost::system::error_category& connection_category() noexcept;
boost::system::error_code make_error_code(ConnectionErrc code) noexcept;

class ClientConnection;

struct ConnectOptions {
  base::Endpoint to;
  std::string client_name;
  std::string client_version;
  std::uint64_t client_instance = 0;
  std::uint64_t connection_number = 0;
  base::Uuid cluster_id;  ///< zero: any
  base::TimePoint deadline;
  /// Gets the connection before Hello is answered, so that its owner can close it meanwhile.
  std::function<void(const std::shared_ptr<ClientConnection>&)> on_greeting;
};

/// Why a connection could not be opened.
struct ConnectFailure {
  base::Error error;
  protocol::Status refusal;  ///< of hello_refused
  std::string detail;        ///< for people, may be empty
};

/// A request as its caller makes it; the connection adds the correlation id.
struct ClientRequest {
  protocol::ApiKey api = protocol::ApiKey::hello;
  std::uint8_t version = 0;
  std::string header;
  std::vector<base::SharedBytes> payload;
  base::TimePoint deadline = base::TimePoint::max();
};

/// The client's end of one connection to one broker: preface, Hello, then pipelined requests that
/// are answered by correlation id. Lives on one runtime; shared because its two loops outlive
/// whoever drops it.
///
/// A request that is not answered by its deadline closes the connection: what is behind it is stuck
/// too (a peer that fell silent, a middlebox that forgot the connection). Every request gets
/// exactly one last call of its function, in the order of arrival of the answers, or an error when
/// the connection ends: closed, connection_lost, end_of_stream, timed_out (the one that was late),
/// ConnectionErrc.
class ClientConnection : public std::enable_shared_from_this<ClientConnection> {
 public:
  /// Called for each frame of the answer; the last one lacks kFrameMoreFollows.
  using OnAnswer = std::function<void(base::Result<Frame>)>;
  struct Opened {
    std::shared_ptr<ClientConnection> connection;  ///< null: see failure
    ConnectFailure failure;
  };

  static asio::awaitable<Opened> open(base::Runtime& runtime, base::Network& network,
                                      ConnectOptions options);
  ~ClientConnection();

  /// False: the connection is closed, on_answer will not be called.
  bool send(ClientRequest request, OnAnswer on_answer);
  /// A request that wants no answer: `on_written` is called when its bytes are with the kernel, or
  /// with the error.
  bool send_unanswered(ClientRequest request, std::function<void(base::Result<void>)> on_written);
  /// send() for coroutines: all frames of the answer, one at least, held until the last one is
  /// there; answer_too_large if they are too many.
  asio::awaitable<base::Result<std::vector<Frame>>> call(ClientRequest request);
  static constexpr std::size_t kAnswerBytesMax = std::size_t{32} << 20;

  /// Ends both loops; every open request fails with `closed`.
  void close() { end(base::BaseErrc::closed); }
  [[nodiscard]] bool usable() const noexcept { return usable_; }
  /// Called once, when the connection has ended for whatever reason, behind the last failed
  /// request.
  void on_end(std::function<void(base::Error)> call) { on_end_ = std::move(call); }

  [[nodiscard]] const protocol::HelloResponse& hello() const noexcept { return hello_; }
  [[nodiscard]] std::uint64_t number() const noexcept { return options_.connection_number; }
  [[nodiscard]] const base::Endpoint& endpoint() const noexcept { return options_.to; }
  [[nodiscard]] base::TimePoint opened_at() const noexcept { return opened_at_; }

 private:
  struct Call;
  struct Waiting {
    base::TimePoint deadline;
    OnAnswer on_answer;
    std::function<void(base::Result<void>)> on_written;
  };

  ClientConnection(base::Runtime& runtime, std::unique_ptr<base::Stream> stream,
                   ConnectOptions options);
  asio::awaitable<ConnectFailure> greet();
  asio::awaitable<base::Error> recognise_peer();
  asio::awaitable<void> read_answers();
  asio::awaitable<void> write_requests();
  void answer(Frame frame);
  void written(std::uint32_t id);
  void push(ClientRequest request, std::uint8_t flags, Waiting waiting);
  void watch(base::TimePoint deadline);
  void check_deadlines();
  void end(base::Error error);

  base::Runtime& runtime_;
  ConnectOptions options_;
  std::unique_ptr<base::Stream> stream_;
  FrameReader reader_;
  FrameWriter writer_;
  protocol::HelloResponse hello_;
  base::TimePoint opened_at_;
  bool usable_ = false;
  bool ended_ = false;
  std::string refusal_detail_;
  std::uint32_t next_id_ = 1;
  std::unordered_map<std::uint32_t, Waiting> waiting_;
  base::Runtime::TimerId timer_ = 0;
  base::TimePoint timer_due_ = base::TimePoint::max();
  std::function<void(base::Error)> on_end_;
};

}  // namespace mq::net

template <>
struct boost::system::is_error_code_enum<mq::net::ConnectionErrc> : std::true_type {};
