#include "support/sim_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <set>
#include <vector>

#include "support/sim_signal.h"

namespace mq::testing {
namespace {

using base::BaseErrc;
using base::Endpoint;
using base::Result;
using base::TimePoint;

constexpr auto kResendEvery = std::chrono::milliseconds(200);
constexpr auto kGiveUpAfter = std::chrono::seconds(60);

class Connection;
class ListenState;

}  // namespace

/// One incarnation of a node. Shared by its network, its streams and their peers.
struct Incarnation {
  std::string node;
  bool alive = true;
  bool refuses = false;  ///< it is dead, and its machine is not
};

struct SimNetwork::State {
  State(Simulator& s, SimLink l) : simulator(s), link(l), random(s.random().fork()) {}

  Simulator& simulator;
  SimLink link;
  SimRandom random;
  std::map<std::string, std::shared_ptr<Incarnation>> nodes;
  std::map<std::pair<std::string, std::uint16_t>, std::shared_ptr<ListenState>> listeners;
  std::set<std::pair<std::string, std::string>> cuts;      // from, to
  std::set<std::pair<std::string, std::string>> refusals;  // the same
  std::vector<std::weak_ptr<Connection>> connections;
  std::uint16_t next_port = 40000;

  base::Duration draw_delay() {
    if (random.chance(link.slow_chance)) return random.duration(link.delay_max, link.slow_max);
    return random.duration(link.delay_min, link.delay_max);
  }
  [[nodiscard]] bool is_cut(const std::string& from, const std::string& to) const {
    return !cuts.empty() && cuts.contains({from, to});
  }
  std::vector<std::shared_ptr<Connection>> live_connections();
};

namespace {

using State = SimNetwork::State;

/// Both directions of one stream. Side 0 connected, side 1 accepted. Kept alive by its streams, by
/// coroutines that wait on it and by the timers that move its bytes.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<State> state, std::shared_ptr<Incarnation> from,
             std::shared_ptr<Incarnation> to)
      : state_(std::move(state)),
        ends_{End{std::move(from)}, End{std::move(to)}},
        pipes_{std::make_unique<Pipe>(), std::make_unique<Pipe>()} {}

  [[nodiscard]] bool involves(const std::string& node) const {
    return ends_[0].owner->node == node || ends_[1].owner->node == node;
  }
  [[nodiscard]] bool broken() const noexcept { return broken_; }
  [[nodiscard]] bool closed() const noexcept { return ends_[0].closed && ends_[1].closed; }

  asio::awaitable<Result<std::size_t>> read(std::size_t side,
                                            std::span<const asio::mutable_buffer> into) {
    const auto self = shared_from_this();
    Pipe& pipe = *pipes_[1 - side];
    while (true) {
      if (ends_[side].closed || !ends_[side].owner->alive)
        co_return make_error_code(BaseErrc::closed);
      if (pipe.ready.size() > pipe.ready_begin) co_return take(pipe, into);
      if (broken_) co_return make_error_code(BaseErrc::connection_lost);
      if (pipe.ended) co_return make_error_code(BaseErrc::end_of_stream);
      co_await pipe.readable.wait();
      const auto cancelled = co_await asio::this_coro::cancellation_state;
      if (cancelled.cancelled() != asio::cancellation_type::none)
        co_return make_error_code(BaseErrc::closed);
    }
  }

  asio::awaitable<Result<void>> write(std::size_t side, std::span<const asio::const_buffer> from) {
    const auto self = shared_from_this();
    Pipe& pipe = *pipes_[side];
    for (const auto& buffer : from) {
      std::size_t done = 0;
      while (done < buffer.size()) {
        if (ends_[side].closed || !ends_[side].owner->alive)
          co_return make_error_code(BaseErrc::closed);
        if (broken_) co_return make_error_code(BaseErrc::connection_lost);
        const std::size_t room =
            state_->link.window_bytes - std::min(pipe.bytes, state_->link.window_bytes);
        if (room == 0) {
          co_await pipe.writable.wait();
          const auto cancelled = co_await asio::this_coro::cancellation_state;
          if (cancelled.cancelled() != asio::cancellation_type::none)
            co_return make_error_code(BaseErrc::closed);
          continue;
        }
        const std::size_t bytes = std::min(
            {room, buffer.size() - done,
             static_cast<std::size_t>(state_->random.between(1, state_->link.piece_bytes_max))});
        send(side, static_cast<const char*>(buffer.data()) + done, bytes);
        done += bytes;
      }
    }
    co_return Result<void>{};
  }

  void close(std::size_t side) {
    if (std::exchange(ends_[side].closed, true)) return;
    pipes_[1 - side]->readable.notify();
    pipes_[side]->writable.notify();
    if (!broken_ && ends_[side].owner->alive) send(side, nullptr, 0);
  }

  /// Both sides find the connection broken; what was in flight is gone, and so, by chance, is what
  /// had arrived and was not yet read.
  void break_now() {
    if (std::exchange(broken_, true)) return;
    for (auto& pipe : pipes_) {
      pipe->flying.clear();
      if (state_->random.chance(0.5)) pipe->ready_begin = pipe->ready.size();
      pipe->readable.notify();
      pipe->writable.notify();
    }
  }
  /// The incarnation at one end is gone: its own calls return, the other end hears nothing.
  void abandon(const std::string& node) {
    for (std::size_t side = 0; side < 2; ++side) {
      if (ends_[side].owner->node != node || ends_[side].owner->alive) continue;
      pipes_[1 - side]->readable.notify();
      pipes_[side]->writable.notify();
    }
  }

 private:
  struct End {
    std::shared_ptr<Incarnation> owner;
    bool closed = false;
  };
  struct Piece {
    TimePoint arrives;
    std::string bytes;  // empty: the end of the stream
  };
  struct Pipe {
    std::deque<Piece> flying;
    std::string ready;
    std::size_t ready_begin = 0;
    std::size_t bytes = 0;  // in flight and ready
    bool moving = false;    // a timer for the first piece runs
    bool ended = false;
    TimePoint silent_since = TimePoint::max();
    SimSignal readable;
    SimSignal writable;
  };

  std::size_t take(Pipe& pipe, std::span<const asio::mutable_buffer> into) {
    std::size_t limit = pipe.ready.size() - pipe.ready_begin;
    if (state_->random.chance(0.1)) limit = state_->random.between(1, limit);
    std::size_t total = 0;
    for (const auto& buffer : into) {
      const std::size_t bytes = std::min(limit - total, buffer.size());
      std::memcpy(buffer.data(), pipe.ready.data() + pipe.ready_begin, bytes);
      pipe.ready_begin += bytes;
      total += bytes;
    }
    if (pipe.ready_begin == pipe.ready.size()) {
      pipe.ready.clear();
      pipe.ready_begin = 0;
    }
    pipe.bytes -= std::min(total, pipe.bytes);
    pipe.writable.notify();
    return total;
  }

  void send(std::size_t side, const char* data, std::size_t bytes) {
    Pipe& pipe = *pipes_[side];
    auto arrives = state_->simulator.now() + state_->draw_delay();
    if (!pipe.flying.empty()) arrives = std::max(arrives, pipe.flying.back().arrives);
    pipe.flying.push_back({arrives, bytes == 0 ? std::string() : std::string(data, bytes)});
    pipe.bytes += bytes;
    move_next(side);
  }

  void move_next(std::size_t side) {
    Pipe& pipe = *pipes_[side];
    if (pipe.moving || pipe.flying.empty()) return;
    pipe.moving = true;
    state_->simulator.start_timer(pipe.flying.front().arrives,
                                  [self = shared_from_this(), side] { self->arrive(side); });
  }

  void arrive(std::size_t side) {
    Pipe& pipe = *pipes_[side];
    pipe.moving = false;
    if (broken_ || pipe.flying.empty()) return;
    const auto now = state_->simulator.now();
    const auto& receiver = *ends_[1 - side].owner;
    const bool lost = state_->is_cut(ends_[side].owner->node, receiver.node);
    const bool receiver_back = !receiver.alive && state_->nodes.contains(receiver.node) &&
                               state_->nodes.at(receiver.node)->alive;
    if (lost || (!receiver.alive && !receiver_back)) return resend_later(side);
    if (receiver_back) return break_now();  // the new incarnation does not know this stream
    pipe.silent_since = TimePoint::max();
    while (!pipe.flying.empty() && pipe.flying.front().arrives <= now) {
      std::string bytes = std::move(pipe.flying.front().bytes);
      pipe.flying
          .pop_front();  // first: delivering may break the connection, which empties the pipe
      deliver(side, std::move(bytes));
    }
    move_next(side);
  }

  void deliver(std::size_t side, std::string bytes) {
    Pipe& pipe = *pipes_[side];
    if (bytes.empty()) {
      pipe.ended = true;
    } else if (ends_[1 - side].closed) {
      return break_now();  // sent to a socket that is gone
    } else {
      pipe.ready += bytes;
    }
    pipe.readable.notify();
  }

  void resend_later(std::size_t side) {
    const auto now = state_->simulator.now();
    auto& silent_since = pipes_[side]->silent_since;
    if (silent_since == TimePoint::max()) silent_since = now;
    if (now - silent_since > kGiveUpAfter) return break_now();
    pipes_[side]->flying.front().arrives = now + kResendEvery;
    for (auto& piece : pipes_[side]->flying)
      piece.arrives = std::max(piece.arrives, now + kResendEvery);
    move_next(side);
  }

  std::shared_ptr<State> state_;
  std::array<End, 2> ends_;
  std::array<std::unique_ptr<Pipe>, 2> pipes_;  // pipes_[i] carries what side i writes
  bool broken_ = false;
};

class SimStream final : public base::Stream {
 public:
  SimStream(std::shared_ptr<Connection> connection, std::size_t side, std::string peer)
      : connection_(std::move(connection)), side_(side), peer_(std::move(peer)) {}
  ~SimStream() override { connection_->close(side_); }

  asio::awaitable<Result<std::size_t>> read_some(
      std::span<const asio::mutable_buffer> into) override {
    return connection_->read(side_, into);
  }
  asio::awaitable<Result<void>> write_all(std::span<const asio::const_buffer> from) override {
    return connection_->write(side_, from);
  }
  void close() override { connection_->close(side_); }
  const std::string& peer() const override { return peer_; }

 private:
  std::shared_ptr<Connection> connection_;
  std::size_t side_;
  std::string peer_;
};

class ListenState {
 public:
  ListenState(std::shared_ptr<Incarnation> o, Endpoint a) : owner(std::move(o)), at(std::move(a)) {}

  std::shared_ptr<Incarnation> owner;
  Endpoint at;
  bool closed = false;
  std::deque<std::unique_ptr<base::Stream>> arrived;
  SimSignal changed;
};

class SimAcceptor final : public base::Acceptor {
 public:
  SimAcceptor(std::shared_ptr<State> state, std::shared_ptr<ListenState> listener)
      : state_(std::move(state)), listener_(std::move(listener)) {}
  ~SimAcceptor() override { close(); }

  asio::awaitable<Result<std::unique_ptr<base::Stream>>> accept() override {
    return accept_from(listener_);
  }
  void close() override {
    if (std::exchange(listener_->closed, true)) return;
    listener_->arrived.clear();
    listener_->changed.notify();
    const auto key = std::pair(listener_->owner->node, listener_->at.port);
    const auto found = state_->listeners.find(key);
    if (found != state_->listeners.end() && found->second == listener_)
      state_->listeners.erase(found);
  }
  Endpoint local() const override { return listener_->at; }

 private:
  static asio::awaitable<Result<std::unique_ptr<base::Stream>>> accept_from(
      std::shared_ptr<ListenState> listener) {
    while (true) {
      if (listener->closed || !listener->owner->alive) co_return make_error_code(BaseErrc::closed);
      if (!listener->arrived.empty()) {
        auto stream = std::move(listener->arrived.front());
        listener->arrived.pop_front();
        co_return std::move(stream);
      }
      co_await listener->changed.wait();
      const auto cancelled = co_await asio::this_coro::cancellation_state;
      if (cancelled.cancelled() != asio::cancellation_type::none)
        co_return make_error_code(BaseErrc::closed);
    }
  }

  std::shared_ptr<State> state_;
  std::shared_ptr<ListenState> listener_;
};

bool is_self(const std::string& host) {
  return host == "127.0.0.1" || host == "localhost" || host == "0.0.0.0" || host == "::1" ||
         host == "::";
}

class NodeNetwork final : public base::Network {
 public:
  NodeNetwork(std::shared_ptr<State> state, std::shared_ptr<Incarnation> owner,
              base::Runtime& runtime)
      : state_(std::move(state)), owner_(std::move(owner)), runtime_(runtime) {}

  asio::awaitable<Result<std::unique_ptr<base::Stream>>> connect(Endpoint to,
                                                                 TimePoint deadline) override {
    return connect_from(state_, owner_, cancels_, &runtime_, std::move(to), deadline);
  }

  void cancel_connects() override { ++*cancels_; }

  Result<std::unique_ptr<base::Acceptor>> listen(const Endpoint& at) override {
    if (!owner_->alive) return make_error_code(BaseErrc::not_permitted);
    if (!is_self(at.host) && at.host != owner_->node) return make_error_code(BaseErrc::not_found);
    Endpoint bound = at;
    if (bound.port == 0) bound.port = state_->next_port++;
    const auto key = std::pair(owner_->node, bound.port);
    if (state_->listeners.contains(key)) return make_error_code(BaseErrc::address_in_use);
    auto listener = std::make_shared<ListenState>(owner_, bound);
    state_->listeners.emplace(key, listener);
    std::unique_ptr<base::Acceptor> acceptor =
        std::make_unique<SimAcceptor>(state_, std::move(listener));
    return acceptor;
  }

 private:
  static asio::awaitable<Result<std::unique_ptr<base::Stream>>> connect_from(
      std::shared_ptr<State> state, std::shared_ptr<Incarnation> owner,
      std::shared_ptr<std::uint64_t> cancels, base::Runtime* runtime, Endpoint to,
      TimePoint deadline) {
    const std::string host = is_self(to.host) ? owner->node : to.host;
    const auto cancels_before = *cancels;
    while (true) {
      const auto arrives = runtime->now() + state->draw_delay() + state->draw_delay();
      co_await runtime->sleep_until(std::min(arrives, deadline));
      if (!owner->alive) co_return make_error_code(BaseErrc::closed);
      if (arrives > deadline || *cancels != cancels_before)
        co_return make_error_code(BaseErrc::timed_out);
      if (!state->nodes.contains(host)) co_return make_error_code(BaseErrc::not_found);
      const auto& there = *state->nodes.at(host);
      const bool cut = state->is_cut(owner->node, host) || state->is_cut(host, owner->node);
      const bool refused = there.refuses || state->refusals.contains({owner->node, host});
      if (!cut && refused) co_return make_error_code(BaseErrc::connection_refused);
      const bool reachable = there.alive && !cut;
      if (reachable) break;
      co_await runtime->sleep_until(std::min(runtime->now() + kResendEvery, deadline));
      if (runtime->now() >= deadline) co_return make_error_code(BaseErrc::timed_out);
    }
    const auto listener = state->listeners.find(std::pair(host, to.port));
    if (listener == state->listeners.end() || !listener->second->owner->alive)
      co_return make_error_code(BaseErrc::connection_refused);
    co_return establish(*state, state, owner, *listener->second, to);
  }

  static std::unique_ptr<base::Stream> establish(State& state, std::shared_ptr<State> shared,
                                                 std::shared_ptr<Incarnation> owner,
                                                 ListenState& listener, const Endpoint& to) {
    auto connection = std::make_shared<Connection>(std::move(shared), owner, listener.owner);
    std::erase_if(state.connections, [](const auto& old) { return old.expired(); });
    state.connections.push_back(connection);
    const Endpoint mine{owner->node, state.next_port++};
    listener.arrived.push_back(std::make_unique<SimStream>(connection, 1, mine.text()));
    listener.changed.notify();
    return std::make_unique<SimStream>(connection, 0, to.text());
  }

  std::shared_ptr<State> state_;
  std::shared_ptr<Incarnation> owner_;
  std::shared_ptr<std::uint64_t> cancels_ = std::make_shared<std::uint64_t>(0);
  base::Runtime& runtime_;
};

}  // namespace

std::vector<std::shared_ptr<Connection>> SimNetwork::State::live_connections() {
  std::vector<std::shared_ptr<Connection>> live;
  for (const auto& weak : connections) {
    auto connection = weak.lock();
    if (connection && !connection->broken() && !connection->closed())
      live.push_back(std::move(connection));
  }
  return live;
}

SimNetwork::SimNetwork(Simulator& simulator, SimLink link)
    : state_(std::make_shared<State>(simulator, link)) {}

/// Streams and timers that still point here must not keep each other alive through the state.
SimNetwork::~SimNetwork() {
  state_->listeners.clear();
  state_->connections.clear();
}

std::unique_ptr<base::Network> SimNetwork::join(const std::string& node, base::Runtime& runtime) {
  auto incarnation = std::make_shared<Incarnation>();
  incarnation->node = node;
  state_->nodes[node] = incarnation;
  return std::make_unique<NodeNetwork>(state_, std::move(incarnation), runtime);
}

void SimNetwork::crash(const std::string& node, Crash how) {
  const auto found = state_->nodes.find(node);
  if (found == state_->nodes.end()) return;
  found->second->alive = false;
  found->second->refuses = how == Crash::reset;
  for (auto it = state_->listeners.begin(); it != state_->listeners.end();) {
    if (it->first.first != node) {
      ++it;
      continue;
    }
    const auto listener = it->second;
    it = state_->listeners.erase(it);
    listener->closed = true;
    listener->changed.notify();
  }
  for (const auto& connection : state_->live_connections()) {
    if (!connection->involves(node)) continue;
    if (how == Crash::reset) connection->break_now();
    connection->abandon(node);
  }
}

void SimNetwork::cut(const std::string& a, const std::string& b) {
  cut_one_way(a, b);
  cut_one_way(b, a);
}

void SimNetwork::cut_one_way(const std::string& from, const std::string& to) {
  state_->cuts.emplace(from, to);
}

void SimNetwork::mend(const std::string& a, const std::string& b) {
  state_->cuts.erase({a, b});
  state_->cuts.erase({b, a});
  state_->refusals.erase({a, b});
  state_->refusals.erase({b, a});
}

void SimNetwork::refuse(const std::string& from, const std::string& to) {
  state_->refusals.emplace(from, to);
}

void SimNetwork::heal() {
  state_->cuts.clear();
  state_->refusals.clear();
}

void SimNetwork::set_link(const SimLink& link) { state_->link = link; }

const SimLink& SimNetwork::link() const { return state_->link; }

void SimNetwork::reset_connections(const std::string& node) {
  for (const auto& connection : state_->live_connections()) {
    if (connection->involves(node)) connection->break_now();
  }
}

void SimNetwork::reset_between(const std::string& a, const std::string& b) {
  for (const auto& connection : state_->live_connections()) {
    if (connection->involves(a) && connection->involves(b)) connection->break_now();
  }
}

bool SimNetwork::reset_one(SimRandom& random) {
  const auto live = state_->live_connections();
  if (live.empty()) return false;
  live[random.below(live.size())]->break_now();
  return true;
}

std::size_t SimNetwork::connections() const { return state_->live_connections().size(); }

}  // namespace mq::testing
