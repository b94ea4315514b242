#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/network.h"
#include "base/wait_list.h"
#include "net/client_connection.h"
#include "replication/controller_link.h"

namespace mq::replication {

struct RemoteControllerOptions {
  std::string name;  ///< of this broker, for the other one's log
  std::string version;
  base::Uuid cluster_id;
};

/// The controller on another broker: one connection to its advertised address, opened when a call
/// needs it. A call that is not answered in time closes it, and so does another address.
class RemoteController final : public ControllerLink {
 public:
  /// `runtime` and `network` outlive it; no call is under way when it goes.
  RemoteController(RemoteControllerOptions options, base::Runtime& runtime, base::Network& network);
  ~RemoteController() override;

  /// Where the controller is; nothing: unknown, every call fails at once.
  void set_address(std::optional<base::Endpoint> address);
  [[nodiscard]] bool has_address() const noexcept { return address_.has_value(); }
  /// Told when a connection has ended that was not dropped here.
  void on_lost(std::function<void()> listener) { lost_ = std::move(listener); }

  asio::awaitable<base::Result<protocol::PullImageResponse>> pull(
      protocol::PullImageRequest request, base::TimePoint deadline) override;
  asio::awaitable<base::Result<protocol::ReportReplicasResponse>> report(
      protocol::ReportReplicasRequest request, base::TimePoint deadline) override;
  asio::awaitable<base::Result<protocol::AlterIsrResponse>> alter_isr(
      protocol::AlterIsrRequest request, base::TimePoint deadline) override;
  asio::awaitable<base::Result<protocol::LeaveBrokerResponse>> leave(
      protocol::LeaveBrokerRequest request, base::TimePoint deadline) override;

 private:
  using ConnectionPtr = std::shared_ptr<net::ClientConnection>;

  asio::awaitable<base::Result<ConnectionPtr>> connection(base::TimePoint deadline);
  asio::awaitable<void> connect(base::TimePoint deadline);
  asio::awaitable<base::Result<std::vector<net::Frame>>> call(protocol::ApiKey api,
                                                              std::string header,
                                                              base::TimePoint deadline);
  void keep(ConnectionPtr connection);
  void drop();

  RemoteControllerOptions options_;
  base::Runtime& runtime_;
  base::Network& network_;
  std::uint64_t instance_;
  std::uint64_t connections_ = 0;
  std::optional<base::Endpoint> address_;
  std::uint64_t address_number_ = 0;  ///< rises with every change
  ConnectionPtr connection_;
  ConnectionPtr greeting_;
  std::function<void()> lost_;
  bool connecting_ = false;
  base::WaitList connected_;
};

}  // namespace mq::replication
