#include "broker/worker.h"

#include "broker/connection.h"
#include "broker/hop.h"
#include "broker/version.h"

namespace mq::broker {
namespace {

/// One timer looks after all connections of a worker, so that an idle connection costs none.
base::Duration check_interval(const Limits& limits) {
  const auto shortest = std::min(
      {limits.hello_timeout, limits.frame_timeout, limits.write_timeout, limits.idle_timeout});
  return std::clamp<base::Duration>(shortest / 4, std::chrono::milliseconds(10),
                                    std::chrono::seconds(1));
}

}  // namespace

Worker::Worker(Core& core, std::size_t index, base::Runtime& runtime)
    : core_(core),
      index_(index),
      runtime_(runtime),
      check_interval_(check_interval(core.limits)),
      request_budget_(runtime, core.limits.request_bytes),
      answer_budget_(runtime, core.limits.answer_bytes),
      hello_budget_(runtime, core.limits.hello_bytes),
      network_(core, runtime, index),
      tasks_(runtime) {}

Worker::~Worker() = default;

replication::ReplicaFetchers& Worker::replica_fetchers() {
  if (fetchers_) return *fetchers_;
  replication::ReplicaFetcherConfig config;
  config.broker = core_.id;
  config.version = std::string(kVersion);
  config.cluster_id = core_.cluster_id;
  config.broker_epoch = [&core = core_] {
    return model::BrokerEpoch(core.broker_epoch.load(std::memory_order_relaxed));
  };
  fetchers_ = std::make_unique<replication::ReplicaFetchers>(std::move(config), runtime_, network_,
                                                             core_.counters);
  return *fetchers_;
}

void Worker::adopt(std::unique_ptr<base::Stream> stream) {
  core_.hot.connections_total.add();
  if (core_.stopping) return;
  core_.hot.connections_open.add();
  serve_new(std::make_shared<Connection>(*this, std::move(stream)));
}

void Worker::adopt(MovingConnection moving) {
  if (core_.stopping) return core_.hot.connections_open.add(-1);
  serve_new(std::make_shared<Connection>(*this, std::move(moving)));
}

void Worker::serve_new(std::shared_ptr<Connection> connection) {
  const std::uint64_t number = ++last_connection_;
  connections_.emplace(number, connection);
  open_connections_.store(connections_.size(), std::memory_order_relaxed);
  arm_deadline_check();
  tasks_.spawn("connection", serve(std::move(connection), number));
}

asio::awaitable<void> Worker::serve(std::shared_ptr<Connection> connection, std::uint64_t number) {
  co_await connection->serve();
  connections_.erase(number);
  open_connections_.store(connections_.size(), std::memory_order_relaxed);
  // Nothing suspends between its look at `stopping` and the message, so the message arrives before
  // the broker has stopped its last worker.
  if (Worker* const to = connection->departs_to()) co_return hand_over(connection->depart(), *to);
  core_.hot.connections_open.add(-1);
}

void Worker::hand_over(MovingConnection moving, Worker& to) {
  auto stream = core_.move_stream(std::move(moving.stream), to.index());
  if (!stream) return core_.hot.connections_open.add(-1);  // it broke meanwhile
  core_.hot.connections_moved.add();
  moving.stream = *std::move(stream);
  // A function that is posted has to be copyable.
  const auto carried = std::make_shared<MovingConnection>(std::move(moving));
  to.runtime().post([&to, carried] { to.adopt(std::move(*carried)); });
}

void Worker::arm_deadline_check() {
  if (check_timer_ != 0 || connections_.empty()) return;
  check_timer_ =
      runtime_.start_timer(runtime_.now() + check_interval_, [this] { check_deadlines(); });
}

void Worker::check_deadlines() {
  check_timer_ = 0;
  const auto now = runtime_.now();
  for (const auto& [number, connection] : connections_) connection->check_deadlines(now);
  arm_deadline_check();
}

std::size_t Worker::requests_under_way() const noexcept {
  std::size_t count = 0;
  for (const auto& [number, connection] : connections_) count += connection->requests_under_way();
  return count;
}

asio::awaitable<void> Worker::drain(base::TimePoint deadline) {
  for (const auto& [number, connection] : connections_) connection->drain();
  if (fetchers_) fetchers_->give_up();
  while (requests_under_way() > 0 && runtime_.now() < deadline)
    co_await runtime_.sleep_for(std::chrono::milliseconds(2));
  for (const auto& [id, partition] : partitions_.all()) partition->close();
}

asio::awaitable<void> Worker::stop(base::TimePoint deadline) {
  {
    const auto draining = connections_;
    for (const auto& [number, connection] : draining) connection->finish();
  }
  while (!connections_.empty() && runtime_.now() < deadline)
    co_await runtime_.sleep_for(std::chrono::milliseconds(2));
  {
    const auto stubborn = connections_;
    for (const auto& [number, connection] : stubborn) connection->close();
  }
  if (check_timer_ != 0) runtime_.cancel_timer(std::exchange(check_timer_, 0));
  if (fetchers_) co_await fetchers_->stop();
  co_await tasks_.wait();
  // Requests that outlived their connections end with their partitions.
  while (alive_connections_ > 0) co_await runtime_.sleep_for(std::chrono::milliseconds(1));
}

}  // namespace mq::broker
