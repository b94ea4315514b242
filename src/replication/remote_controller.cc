#include "replication/remote_controller.h"

#include "protocol/parts.h"

namespace mq::replication {
namespace {

using base::Result;

constexpr auto kConnectTime = std::chrono::seconds(2);

/// The frames of one answer as one message.
Result<protocol::PullImageResponse> join_frames(const std::vector<net::Frame>& frames) {
  MQ_TRY(auto whole, protocol::decode_pull_image_response(frames.front().header));
  for (std::size_t i = 1; i < frames.size(); ++i) {
    MQ_TRY(auto part, protocol::decode_pull_image_response(frames[i].header));
    protocol::join(whole, std::move(part));
  }
  return whole;
}

}  // namespace

RemoteController::RemoteController(RemoteControllerOptions options, base::Runtime& runtime,
                                   base::Network& network)
    : options_(std::move(options)),
      runtime_(runtime),
      network_(network),
      instance_(runtime.random()),
      connected_(runtime) {}

RemoteController::~RemoteController() { drop(); }

void RemoteController::set_address(std::optional<base::Endpoint> address) {
  if (address == address_) return;
  address_ = std::move(address);
  ++address_number_;
  drop();
  connected_.notify_all();
}

void RemoteController::drop() {
  if (greeting_) greeting_->close();
  if (connection_) {
    connection_->on_end({});
    connection_->close();
  }
  greeting_.reset();
  connection_.reset();
}

asio::awaitable<Result<RemoteController::ConnectionPtr>> RemoteController::connection(
    base::TimePoint deadline) {
  const std::uint64_t number = address_number_;
  if (!connecting_ && address_ && !(connection_ && connection_->usable()))
    co_await connect(deadline);
  while (connecting_) {
    const bool notified = co_await connected_.wait_until(deadline);
    if (!notified) co_return make_error_code(base::BaseErrc::timed_out);
  }
  if (number != address_number_ || !connection_ || !connection_->usable())
    co_return make_error_code(base::BaseErrc::connection_lost);
  co_return connection_;
}

asio::awaitable<void> RemoteController::connect(base::TimePoint deadline) {
  connecting_ = true;
  const std::uint64_t number = address_number_;
  net::ConnectOptions options;
  options.to = *address_;
  options.client_name = options_.name;
  options.client_version = options_.version;
  options.client_instance = instance_;
  options.connection_number = ++connections_;
  options.cluster_id = options_.cluster_id;
  options.deadline = std::min(deadline, runtime_.now() + kConnectTime);
  options.on_greeting = [this, number](const ConnectionPtr& greeting) {
    if (number == address_number_) greeting_ = greeting;
  };
  auto opened = co_await net::ClientConnection::open(runtime_, network_, std::move(options));
  connecting_ = false;
  greeting_.reset();
  if (opened.connection) {
    if (number == address_number_) {
      keep(std::move(opened.connection));
    } else {
      opened.connection->close();
    }
  }
  connected_.notify_all();
}

void RemoteController::keep(ConnectionPtr connection) {
  if (connection_) connection_->on_end({});
  connection_ = std::move(connection);
  connection_->on_end([this](base::Error) {
    if (lost_) lost_();
  });
  // It may have ended behind its Hello, before anybody could be told.
  if (!connection_->usable() && lost_) lost_();
}

asio::awaitable<Result<std::vector<net::Frame>>> RemoteController::call(protocol::ApiKey api,
                                                                        std::string header,
                                                                        base::TimePoint deadline) {
  MQ_CO_TRY(const auto connected, co_await connection(deadline));
  net::ClientRequest request;
  request.api = api;
  request.header = std::move(header);
  request.deadline = deadline;
  co_return co_await connected->call(std::move(request));
}

asio::awaitable<Result<protocol::PullImageResponse>> RemoteController::pull(
    protocol::PullImageRequest request, base::TimePoint deadline) {
  MQ_CO_TRY(const auto frames,
            co_await call(protocol::ApiKey::pull_image, protocol::encode(request), deadline));
  co_return join_frames(frames);
}

asio::awaitable<Result<protocol::ReportReplicasResponse>> RemoteController::report(
    protocol::ReportReplicasRequest request, base::TimePoint deadline) {
  MQ_CO_TRY(const auto frames,
            co_await call(protocol::ApiKey::report_replicas, protocol::encode(request), deadline));
  co_return protocol::decode_report_replicas_response(frames.front().header);
}

asio::awaitable<Result<protocol::AlterIsrResponse>> RemoteController::alter_isr(
    protocol::AlterIsrRequest request, base::TimePoint deadline) {
  MQ_CO_TRY(const auto frames,
            co_await call(protocol::ApiKey::alter_isr, protocol::encode(request), deadline));
  co_return protocol::decode_alter_isr_response(frames.front().header);
}

asio::awaitable<Result<protocol::LeaveBrokerResponse>> RemoteController::leave(
    protocol::LeaveBrokerRequest request, base::TimePoint deadline) {
  MQ_CO_TRY(const auto frames,
            co_await call(protocol::ApiKey::leave_broker, protocol::encode(request), deadline));
  co_return protocol::decode_leave_broker_response(frames.front().header);
}

}  // namespace mq::replication
