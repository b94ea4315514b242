#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/network.h"
#include "base/wait_list.h"
#include "client/core/log.h"
#include "mq/config.h"
#include "mq/result.h"
#include "net/client_connection.h"

namespace mq::client {

using ConnectionPtr = std::shared_ptr<net::ClientConnection>;

/// "broker 2 (hdd-02:9500)".
std::string broker_text(std::int32_t id, const std::string& address);

/// The connections of one client object: at most one per broker (by its advertised address) and per
/// bootstrap address, opened when somebody asks, kept until they break. On the client's runtime.
///
/// Attempts: the first comes at once; after a failure, or after a connection that lived less than a
/// second, the next waits 50 ms, doubled up to 2 s, spread by a quarter either way; addresses that
/// keep failing share two attempts per second.
class ConnectionPool {
 public:
  /// Called after any peer's connection came or went.
  using OnChange = std::function<void()>;

  ConnectionPool(base::Runtime& runtime, base::Network& network, Log& log,
                 const ClientConfig& config, std::uint64_t client_instance);
  ~ConnectionPool();

  /// What the metadata says. A broker whose address changed loses its connection.
  void set_brokers(const std::map<std::int32_t, base::Endpoint>& brokers);
  [[nodiscard]] std::string name(std::int32_t broker) const;
  void on_change(OnChange call) { on_change_.push_back(std::move(call)); }

  /// The open connection to a broker, or null.
  [[nodiscard]] ConnectionPtr find(std::int32_t broker) const;
  /// Begins to connect unless that is done or under way; on_change tells the outcome.
  void want(std::int32_t broker);
  /// Why the last attempt failed, or that no such broker is known; nothing while connected or
  /// before the first.
  [[nodiscard]] std::optional<Error> trouble(std::int32_t broker) const;

  /// The open connection to this broker, or the outcome of the next attempt; for callers who look
  /// at the metadata again before they try once more.
  asio::awaitable<Result<ConnectionPtr>> get(std::int32_t broker, base::TimePoint deadline);
  /// A connection to any broker but those in `except`, the open ones first. Else known brokers and
  /// bootstrap addresses are tried until `deadline`, the next one as soon as one has failed or has
  /// been silent for 250 ms, so that a dead address holds nobody up.
  asio::awaitable<Result<ConnectionPtr>> any(base::TimePoint deadline,
                                             std::set<std::int32_t> except = {});
  /// True when there is anybody else to ask.
  [[nodiscard]] bool has_other(const std::set<std::int32_t>& except) const;

  /// Closes all connections; everyone waiting gets `closed`.
  asio::awaitable<void> stop();

  [[nodiscard]] const base::Uuid& cluster_id() const noexcept { return cluster_id_; }
  [[nodiscard]] std::uint64_t attempts() const noexcept { return attempts_; }

 private:
  struct Peer {
    explicit Peer(base::Runtime& runtime) : changed(runtime) {}
    base::Endpoint address;
    std::int32_t broker = -1;  ///< -1: a bootstrap address
    ConnectionPtr connection;
    ConnectionPtr greeting;  ///< waits for Hello's answer
    bool connecting = false;
    std::uint64_t outcomes = 0;  ///< attempts that ended
    int failures = 0;            ///< in a row
    base::TimePoint not_before{};
    std::optional<Error> error;
    base::WaitList changed;
  };
  using PeerPtr = std::shared_ptr<Peer>;

  [[nodiscard]] PeerPtr peer_of(std::int32_t broker) const;
  [[nodiscard]] std::string text(const Peer& peer) const;
  [[nodiscard]] ConnectionPtr open_connection(const std::set<std::int32_t>& except) const;
  [[nodiscard]] std::vector<PeerPtr> candidates(const std::set<std::int32_t>& except) const;
  asio::awaitable<std::optional<Error>> try_all(std::vector<PeerPtr> peers,
                                                std::set<std::int32_t> except,
                                                base::TimePoint deadline);
  void begin(const PeerPtr& peer);
  asio::awaitable<void> attempt(PeerPtr peer);
  void succeeded(const PeerPtr& peer, ConnectionPtr connection);
  void failed(const PeerPtr& peer, Error error);
  void lost(const PeerPtr& peer, const net::ClientConnection& connection, base::Error error);
  void back_off(Peer& peer);
  void changed(const PeerPtr& peer);
  asio::awaitable<bool> settle(PeerPtr peer, base::TimePoint deadline);

  base::Runtime& runtime_;
  base::Network& network_;
  Log& log_;
  const ClientConfig& config_;
  std::uint64_t client_instance_;
  std::uint64_t next_number_ = 1;
  base::Uuid cluster_id_;
  std::vector<PeerPtr> bootstrap_;
  std::map<std::int32_t, PeerPtr> brokers_;
  std::string worked_at_bootstrap_;  ///< the address through which the cluster was found
  base::TimePoint next_slow_attempt_{};
  std::uint64_t attempts_ = 0;
  std::vector<OnChange> on_change_;
  base::TaskGroup tasks_;
  base::WaitList stopping_;
  base::WaitList any_changed_;
  bool stopped_ = false;
};

}  // namespace mq::client
