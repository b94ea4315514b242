#include "client/core/connection_pool.h"

#include <fmt/format.h>

#include <algorithm>

#include "client/core/error.h"
#include "mq/version.h"

namespace mq::client {
namespace {

using std::chrono::milliseconds;

constexpr std::uint16_t kDefaultPort = 9500;
constexpr milliseconds kAttemptTimeout{5000};
/// A peer that is there says Hello faster than this nearly everywhere.
constexpr milliseconds kNextAddressAfter{250};
constexpr milliseconds kBackOffMin{50};
constexpr milliseconds kBackOffMax{2000};
constexpr milliseconds kSlowSpacing{500};
constexpr int kSlowFailures = 4;
constexpr std::chrono::seconds kShortLife{1};

}  // namespace

std::string broker_text(std::int32_t id, const std::string& address) {
  return fmt::format("broker {} ({})", id, address);
}

ConnectionPool::ConnectionPool(base::Runtime& runtime, base::Network& network, Log& log,
                               const ClientConfig& config, std::uint64_t client_instance)
    : runtime_(runtime),
      network_(network),
      log_(log),
      config_(config),
      client_instance_(client_instance),
      tasks_(runtime),
      stopping_(runtime),
      any_changed_(runtime) {
  for (const std::string& text : config.bootstrap) {
    const auto parsed = base::parse_endpoint(text, kDefaultPort);
    if (!parsed.endpoint) continue;  // validate() has refused it
    auto peer = std::make_shared<Peer>(runtime);
    peer->address = *parsed.endpoint;
    bootstrap_.push_back(std::move(peer));
  }
}

ConnectionPool::~ConnectionPool() = default;

void ConnectionPool::set_brokers(const std::map<std::int32_t, base::Endpoint>& brokers) {
  std::map<std::int32_t, PeerPtr> next;
  for (const auto& [id, address] : brokers) {
    const PeerPtr known = peer_of(id);
    if (known && known->address == address) {
      next.emplace(id, known);
      continue;
    }
    auto peer = std::make_shared<Peer>(runtime_);
    peer->address = address;
    peer->broker = id;
    // The bootstrap address may be the advertised one: then that connection is this broker's.
    for (const PeerPtr& first : bootstrap_) {
      if (first->address == address && first->connection &&
          first->connection->hello().broker_id == id) {
        succeeded(peer, std::exchange(first->connection, nullptr));
      }
    }
    next.emplace(id, std::move(peer));
  }
  std::map<std::int32_t, PeerPtr> old = std::exchange(brokers_, std::move(next));
  for (const auto& [id, peer] : old) {
    if (peer_of(id) != peer && peer->connection) peer->connection->close();
  }
}

ConnectionPool::PeerPtr ConnectionPool::peer_of(std::int32_t broker) const {
  const auto found = brokers_.find(broker);
  return found == brokers_.end() ? nullptr : found->second;
}

std::string ConnectionPool::text(const Peer& peer) const {
  if (peer.broker < 0) return peer.address.text();
  std::string address = broker_text(peer.broker, peer.address.text());
  if (worked_at_bootstrap_.empty() || worked_at_bootstrap_ == peer.address.text()) return address;
  return fmt::format("{}, the address that it advertises (bootstrap {} did answer)", address,
                     worked_at_bootstrap_);
}

std::string ConnectionPool::name(std::int32_t broker) const {
  const PeerPtr peer = peer_of(broker);
  return peer ? broker_text(broker, peer->address.text()) : fmt::format("broker {}", broker);
}

ConnectionPtr ConnectionPool::find(std::int32_t broker) const {
  const PeerPtr peer = peer_of(broker);
  return peer && peer->connection && peer->connection->usable() ? peer->connection : nullptr;
}

std::optional<Error> ConnectionPool::trouble(std::int32_t broker) const {
  const PeerPtr peer = peer_of(broker);
  if (peer) return peer->error;
  return make_error(Errc::unreachable, fmt::format("no address of broker {} is known", broker));
}

void ConnectionPool::want(std::int32_t broker) {
  if (const PeerPtr peer = peer_of(broker)) begin(peer);
}

void ConnectionPool::begin(const PeerPtr& peer) {
  if (stopped_ || peer->connecting || peer->connection) return;
  peer->connecting = true;
  tasks_.spawn("connect", attempt(peer));
}

asio::awaitable<void> ConnectionPool::attempt(PeerPtr peer) {
  base::TimePoint due = peer->not_before;
  if (peer->failures >= kSlowFailures) {
    due = std::max(due, next_slow_attempt_);
    next_slow_attempt_ = std::max(due, runtime_.now()) + kSlowSpacing;
  }
  while (!stopped_ && runtime_.now() < due) co_await stopping_.wait_until(due);
  if (stopped_) co_return failed(peer, make_error(Errc::closed, ""));

  ++attempts_;
  net::ConnectOptions options;
  options.to = peer->address;
  options.client_name = config_.client_id;
  options.client_version = MQ_VERSION_TEXT;
  options.client_instance = client_instance_;
  options.connection_number = next_number_++;
  options.cluster_id = cluster_id_;
  options.deadline =
      runtime_.now() + std::min<milliseconds>(kAttemptTimeout, config_.connect_timeout);
  options.on_greeting = [peer](const ConnectionPtr& connection) { peer->greeting = connection; };
  auto opened = co_await net::ClientConnection::open(runtime_, network_, std::move(options));
  peer->greeting.reset();
  if (!opened.connection) co_return failed(peer, from_connect_failure(opened.failure, text(*peer)));
  if (stopped_) {
    opened.connection->close();
    co_return failed(peer, make_error(Errc::closed, ""));
  }
  const std::int32_t answered = opened.connection->hello().broker_id;
  if (peer->broker >= 0 && answered != peer->broker) {
    opened.connection->close();
    co_return failed(peer, make_error(Errc::unreachable, fmt::format("{} answers as broker {}",
                                                                     text(*peer), answered)));
  }
  succeeded(peer, std::move(opened.connection));
}

void ConnectionPool::succeeded(const PeerPtr& peer, ConnectionPtr connection) {
  if (cluster_id_ == base::Uuid{}) cluster_id_ = connection->hello().cluster_id;
  if (peer->broker < 0) worked_at_bootstrap_ = peer->address.text();
  connection->on_end(
      [this, peer, raw = connection.get()](base::Error error) { lost(peer, *raw, error); });
  peer->connection = std::move(connection);
  peer->error.reset();
  changed(peer);
}

void ConnectionPool::failed(const PeerPtr& peer, Error error) {
  if (!stopped_) log_.warning(peer->address.text(), error.message);
  peer->error = std::move(error);
  back_off(*peer);
  changed(peer);
}

void ConnectionPool::lost(const PeerPtr& peer, const net::ClientConnection& connection,
                          base::Error error) {
  if (peer->connection.get() != &connection) return;
  const bool lived = runtime_.now() - connection.opened_at() >= kShortLife;
  peer->connection.reset();
  peer->error = from_transport(error, text(*peer));
  if (lived) {
    peer->failures = 0;
    peer->not_before = {};
  } else {
    back_off(*peer);
  }
  changed(peer);
}

void ConnectionPool::back_off(Peer& peer) {
  const int doublings = std::min(peer.failures, 10);
  ++peer.failures;
  const auto delay = std::min(kBackOffMax, kBackOffMin * (1 << doublings));
  const auto per_mille = static_cast<std::int64_t>(750 + runtime_.random() % 501);
  peer.not_before = runtime_.now() + std::chrono::microseconds(delay.count() * per_mille);
}

void ConnectionPool::changed(const PeerPtr& peer) {
  peer->connecting = false;
  ++peer->outcomes;
  peer->changed.notify_all();
  any_changed_.notify_all();
  if (stopped_) return;
  for (const OnChange& call : on_change_) call();
}

/// Until the peer is connected or one attempt has failed; false when `deadline` came first or the
/// pool stops.
asio::awaitable<bool> ConnectionPool::settle(PeerPtr peer, base::TimePoint deadline) {
  const std::uint64_t before = peer->outcomes;
  while (!stopped_ && !peer->connection && peer->outcomes == before) {
    begin(peer);
    if (!co_await peer->changed.wait_until(deadline)) co_return false;
  }
  co_return !stopped_;
}

asio::awaitable<Result<ConnectionPtr>> ConnectionPool::get(std::int32_t broker,
                                                           base::TimePoint deadline) {
  const PeerPtr peer = peer_of(broker);
  if (!peer) {
    co_return make_error(Errc::unreachable,
                         fmt::format("no address of broker {} is known", broker));
  }
  if (!peer->connection && !stopped_) (void)co_await settle(peer, deadline);
  if (stopped_) co_return make_error(Errc::closed, "");
  if (peer->connection) co_return peer->connection;
  if (peer->error) co_return *peer->error;
  co_return make_error(Errc::unreachable,
                       fmt::format("cannot reach {}: no answer in time", text(*peer)));
}

ConnectionPtr ConnectionPool::open_connection(const std::set<std::int32_t>& except) const {
  const auto usable = [&](const PeerPtr& peer) {
    return peer->connection && peer->connection->usable() &&
           !except.contains(peer->connection->hello().broker_id);
  };
  for (const auto& [id, peer] : brokers_) {
    if (usable(peer)) return peer->connection;
  }
  for (const PeerPtr& peer : bootstrap_) {
    if (usable(peer)) return peer->connection;
  }
  return nullptr;
}

/// Known brokers, then bootstrap addresses, the ones that failed least first.
std::vector<ConnectionPool::PeerPtr> ConnectionPool::candidates(
    const std::set<std::int32_t>& except) const {
  std::vector<PeerPtr> peers;
  for (const auto& [id, peer] : brokers_) {
    if (!except.contains(id)) peers.push_back(peer);
  }
  for (const PeerPtr& peer : bootstrap_) {
    const bool known = std::ranges::any_of(
        brokers_, [&](const auto& entry) { return entry.second->address == peer->address; });
    const bool excepted = peer->connection && except.contains(peer->connection->hello().broker_id);
    if (!known && !excepted) peers.push_back(peer);
  }
  std::ranges::stable_sort(peers, {}, [](const PeerPtr& peer) { return peer->failures; });
  return peers;
}

bool ConnectionPool::has_other(const std::set<std::int32_t>& except) const {
  return !candidates(except).empty();
}

/// One attempt at each, until one of them is connected; otherwise why the first one failed, or
/// nothing when the time is over before that.
asio::awaitable<std::optional<Error>> ConnectionPool::try_all(std::vector<PeerPtr> peers,
                                                              std::set<std::int32_t> except,
                                                              base::TimePoint deadline) {
  std::vector<std::uint64_t> before;  // outcomes of those that have been begun
  base::TimePoint next_due;
  const auto failed = [&](std::size_t i) { return peers[i]->outcomes != before[i]; };
  while (!stopped_ && !open_connection(except) && runtime_.now() < deadline) {
    bool all_failed = true;
    for (std::size_t i = 0; i < before.size(); ++i) all_failed = all_failed && failed(i);
    const bool more = before.size() < peers.size();
    if (more && (all_failed || runtime_.now() >= next_due)) {
      const PeerPtr& peer = peers[before.size()];
      before.push_back(peer->outcomes);
      next_due = runtime_.now() + kNextAddressAfter;
      begin(peer);
      continue;
    }
    if (!more && all_failed) break;
    (void)co_await any_changed_.wait_until(more ? std::min(next_due, deadline) : deadline);
  }
  std::optional<Error> first_error;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const std::optional<Error>& error = peers[i]->error;
    if (!error || !failed(i)) continue;
    if (!first_error || error->code == Errc::not_mq) first_error = error;
  }
  co_return first_error;
}

asio::awaitable<Result<ConnectionPtr>> ConnectionPool::any(base::TimePoint deadline,
                                                           std::set<std::int32_t> except) {
  std::optional<Error> first_error;
  while (true) {
    if (stopped_) co_return make_error(Errc::closed, "");
    if (auto open = open_connection(except)) co_return open;
    const std::vector<PeerPtr> peers = candidates(except);
    if (peers.empty()) co_return make_error(Errc::unreachable, "no broker address is known");
    const auto error = co_await try_all(peers, except, deadline);
    if (stopped_) co_return make_error(Errc::closed, "");
    if (auto open = open_connection(except)) co_return open;
    if (error && (!first_error || error->code == Errc::not_mq)) first_error = error;
    if (first_error && (first_error->code == Errc::not_mq || !first_error->retriable) &&
        peers.size() == 1) {
      co_return *first_error;  // one address, and time does not mend it
    }
    if (runtime_.now() >= deadline) {
      if (first_error) co_return *first_error;
      co_return make_error(Errc::unreachable,
                           fmt::format("cannot reach {}: no answer in time", text(*peers.front())));
    }
  }
}

asio::awaitable<void> ConnectionPool::stop() {
  stopped_ = true;
  stopping_.notify_all();
  any_changed_.notify_all();
  std::vector<PeerPtr> peers = bootstrap_;
  for (const auto& [id, peer] : brokers_) peers.push_back(peer);
  for (const PeerPtr& peer : peers) {
    peer->changed.notify_all();
    // A copy: closing takes the connection out of its peer.
    if (const ConnectionPtr connection = peer->connection) connection->close();
    if (const ConnectionPtr greeting = peer->greeting) greeting->close();
  }
  network_.cancel_connects();
  co_await tasks_.wait();
}

}  // namespace mq::client
