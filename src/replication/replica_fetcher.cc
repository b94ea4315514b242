#include "replication/replica_fetcher.h"

#include <algorithm>

#include "base/check.h"
#include "base/log.h"

namespace mq::replication {
namespace {

constexpr base::Duration kConnectTime = std::chrono::seconds(2);
constexpr base::Duration kBackOffMin = std::chrono::milliseconds(20);
constexpr base::Duration kBackOffMax = std::chrono::seconds(1);
/// All that batches of one worker may hold while their disks are behind.
constexpr std::size_t kWaitingBytes = std::size_t{64} << 20;

std::uint32_t in_ms(base::Duration span) {
  return static_cast<std::uint32_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(span).count());
}

std::string text_of(const net::ConnectFailure& failure) {
  if (!failure.refusal.ok() && !failure.refusal.text.empty()) return failure.refusal.text;
  if (!failure.detail.empty()) return failure.detail;
  return failure.error.message();
}

}  // namespace

ReplicaFetcher::ReplicaFetcher(ReplicaFetcherConfig config, model::BrokerId leader,
                               base::Runtime& runtime, base::Network& network,
                               base::Counters& counters)
    : config_(std::move(config)),
      leader_(leader),
      runtime_(runtime),
      network_(network),
      bytes_fetched_(counters.get("replica_bytes_fetched_total")),
      instance_(runtime.random()),
      changed_(runtime),
      tasks_(runtime) {}

ReplicaFetcher::~ReplicaFetcher() = default;

void ReplicaFetcher::start() { tasks_.spawn("replica fetcher", run()); }

void ReplicaFetcher::set_address(std::optional<base::Endpoint> address) {
  if (address == address_) return;
  address_ = std::move(address);
  back_off_ = {};
  drop();
}

void ReplicaFetcher::follow(std::shared_ptr<FollowedPartition> partition) {
  const auto id = partition->id();
  partition->on_news([this, id](bool urgent) { note_news(id, urgent); });
  partitions_[id] = std::move(partition);
  std::erase(unsubscribes_, id);
  note_news(id, true);
  changed_.notify_all();
}

void ReplicaFetcher::unfollow(const model::PartitionId& id) {
  const auto found = partitions_.find(id);
  if (found == partitions_.end()) return;
  found->second->on_news({});
  partitions_.erase(found);
  if (!connection_) return;
  unsubscribes_.push_back(id);
  send_soon();
}

void ReplicaFetcher::give_up() {
  stopping_ = true;
  drop();
  changed_.notify_all();
}

asio::awaitable<void> ReplicaFetcher::stop() {
  give_up();
  co_await tasks_.wait();
}

/// Ends the connection, or the attempt to get one.
void ReplicaFetcher::drop() {
  if (greeting_) greeting_->close();
  const auto connection = connection_;
  if (connection_) end_session();
  if (connection) connection->close();
  changed_.notify_all();
}

asio::awaitable<void> ReplicaFetcher::run() {
  while (!stopping_) {
    if (partitions_.empty() || !address_) {
      co_await changed_.wait();
      continue;
    }
    co_await connect();
    while (connection_) co_await changed_.wait();
    if (!stopping_) co_await pause();
  }
}

asio::awaitable<void> ReplicaFetcher::connect() {
  net::ConnectOptions options;
  options.to = *address_;
  options.client_name = fmt::format("broker {} replicas", config_.broker);
  options.client_version = config_.version;
  options.client_instance = instance_;
  options.connection_number = ++connections_;
  options.cluster_id = config_.cluster_id;
  options.deadline = runtime_.now() + kConnectTime;
  options.on_greeting = [this](const ConnectionPtr& greeting) { greeting_ = greeting; };
  const auto to = *address_;
  auto opened = co_await net::ClientConnection::open(runtime_, network_, std::move(options));
  greeting_.reset();
  if (!opened.connection) {
    trouble(text_of(opened.failure));
  } else if (!opened.connection->usable()) {
    // It ended behind its Hello, before anybody could be told.
    trouble("the connection was lost");
  } else if (stopping_ || partitions_.empty() || address_ != to) {
    opened.connection->close();
  } else {
    begin_session(std::move(opened.connection));
  }
}

asio::awaitable<void> ReplicaFetcher::pause() {
  back_off_ = std::clamp(2 * back_off_, kBackOffMin, kBackOffMax);
  const auto address = address_;
  const auto until = runtime_.now() + back_off_;
  while (!stopping_ && address_ == address && runtime_.now() < until)
    co_await changed_.wait_until(until);
}

void ReplicaFetcher::trouble(const std::string& why) {
  if (stopping_) return;
  // A broker that restarts is looked for often; one line says it.
  if (trouble_.empty()) {
    base::log_warning("replication", "nothing is fetched from broker {} ({}) now: {}", leader_,
                      address_ ? address_->text() : "address unknown", why);
  }
  trouble_ = why;
}

void ReplicaFetcher::begin_session(ConnectionPtr connection) {
  connection_ = std::move(connection);
  ++session_;
  session_epoch_ = config_.broker_epoch();
  outstanding_ = 0;
  unsubscribes_.clear();
  connection_->on_end([this, session = session_](base::Error why) {
    if (session != session_) return;
    trouble(why.message());
    end_session();
  });
  for (const auto& [id, partition] : partitions_) note_news(id, true);
  send_what_is_due();
}

void ReplicaFetcher::end_session() {
  ++session_;
  connection_.reset();
  outstanding_ = 0;
  unsubscribes_.clear();
  // Their news may come from within.
  std::vector<std::shared_ptr<FollowedPartition>> all;
  for (const auto& [id, partition] : partitions_) all.push_back(partition);
  for (const auto& partition : all) partition->disconnected();
  changed_.notify_all();
}

void ReplicaFetcher::note_news(const model::PartitionId& id, bool urgent) {
  if (has_news_.insert(id).second) news_.push_back(id);
  if (!urgent) return;
  urgent_ = true;
  send_soon();
}

/// Once for all that one flush or one answer has moved.
void ReplicaFetcher::send_soon() {
  if (!connection_ || std::exchange(sending_soon_, true)) return;
  tasks_.spawn("replica positions", send_now());
}

asio::awaitable<void> ReplicaFetcher::send_now() {
  co_await asio::post(runtime_.executor(), asio::use_awaitable);  // behind what is ready already
  sending_soon_ = false;
  send_what_is_due();
  co_return;
}

void ReplicaFetcher::send_what_is_due() {
  if (!connection_ || !connection_->usable()) return;
  // R4: positions count for the registration under which they were told.
  if (config_.broker_epoch() != session_epoch_) return drop();
  while (connection_ && outstanding_ < protocol::kReplicaFetchesHeld) send();
  if (connection_ && (urgent_ || !unsubscribes_.empty()) &&
      outstanding_ <= protocol::kReplicaFetchesHeld)
    send();
}

void ReplicaFetcher::send() {
  const auto message = next_request();
  net::ClientRequest request;
  request.api = protocol::ApiKey::replica_fetch;
  request.header = protocol::encode(message);
  request.deadline = runtime_.now() + config_.wait + config_.answer_margin;
  ++outstanding_;
  connection_->send(std::move(request),
                    [this, session = session_](const base::Result<net::Frame>& frame) {
                      answered(session, frame);
                    });
}

protocol::ReplicaFetchRequest ReplicaFetcher::next_request() {
  protocol::ReplicaFetchRequest request;
  request.envelope.deadline_ms = in_ms(config_.wait + config_.answer_margin);
  request.broker = config_.broker.value();
  request.broker_epoch = session_epoch_.value();
  request.wait_ms = in_ms(config_.wait);
  request.bytes_max = config_.bytes_max;
  const std::size_t gone = std::min(unsubscribes_.size(), protocol::kReplicaFetchEntriesMax);
  request.unsubscribe.assign(unsubscribes_.begin(),
                             unsubscribes_.begin() + static_cast<std::ptrdiff_t>(gone));
  unsubscribes_.erase(unsubscribes_.begin(),
                      unsubscribes_.begin() + static_cast<std::ptrdiff_t>(gone));
  std::size_t taken = 0;
  for (; taken < news_.size(); ++taken) {
    const auto& id = news_[taken];
    const auto found = partitions_.find(id);
    if (found != partitions_.end() && !add_news(*found->second, request)) break;
    has_news_.erase(id);
  }
  news_.erase(news_.begin(), news_.begin() + static_cast<std::ptrdiff_t>(taken));
  urgent_ = !news_.empty();
  return request;
}

/// False when there is no room for it any more.
bool ReplicaFetcher::add_news(FollowedPartition& partition,
                              protocol::ReplicaFetchRequest& request) {
  constexpr std::size_t kMax = protocol::kReplicaFetchEntriesMax;
  if (request.subscribe.size() == kMax || request.positions.size() == kMax ||
      request.unsubscribe.size() == kMax)
    return false;
  if (partition.take_unsubscribe()) request.unsubscribe.push_back(partition.id());
  if (auto subscribe = partition.subscribe(number_ + 1)) {
    ++number_;
    request.subscribe.push_back(*subscribe);
  } else if (const auto position = partition.take_position()) {
    request.positions.push_back(*position);
  }
  return true;
}

void ReplicaFetcher::answered(std::uint64_t session, const base::Result<net::Frame>& frame) {
  if (session != session_ || !frame) return;  // that the connection has ended is told once
  const bool last = (frame->head.flags & protocol::kFrameMoreFollows) == 0;
  if (last) --outstanding_;
  const bool taken = take(*frame);
  if (!taken || (partitions_.empty() && last)) return drop();
  send_what_is_due();
}

/// False: the connection is of no use.
bool ReplicaFetcher::take(const net::Frame& frame) {
  const auto response = protocol::decode_replica_fetch_response(frame.header);
  if (!response) {
    trouble("an answer does not parse");
    return false;
  }
  const auto& status = response->envelope.status;
  if (!status.ok()) {
    // It stops as it should: no reason to warn of anything.
    if (status.error() == protocol::WireError::shutting_down && trouble_.empty()) {
      base::log_info("replication", "broker {} is about to stop; nothing is fetched from it now",
                     leader_);
      trouble_ = status.text;
    }
    trouble(status.text);
    return false;
  }
  if (!trouble_.empty()) {
    base::log_info("replication", "broker {} is fetched from again", leader_);
    trouble_.clear();
  }
  back_off_ = {};
  base::Bytes rest = frame.payload;
  for (const auto& result : response->results) {
    if (result.payload_bytes > rest.size()) {
      trouble("an answer has fewer bytes than it says");
      return false;
    }
    const auto batches = rest.first(result.payload_bytes);
    rest = rest.subspan(result.payload_bytes);
    const auto found = partitions_.find(result.partition);
    if (found == partitions_.end()) continue;
    const auto partition = found->second;
    partition->take(result, frame.body, batches);
    note_news(result.partition, partition->has_urgent_position());
  }
  if (!rest.empty()) {
    trouble("an answer has more bytes than it says");
    return false;
  }
  bytes_fetched_.add(static_cast<std::int64_t>(frame.payload.size()));
  return true;
}

ReplicaFetchers::ReplicaFetchers(ReplicaFetcherConfig config, base::Runtime& runtime,
                                 base::Network& network, base::Counters& counters)
    : config_(std::move(config)),
      runtime_(runtime),
      network_(network),
      counters_(counters),
      memory_(runtime, kWaitingBytes) {}

ReplicaFetchers::~ReplicaFetchers() = default;

void ReplicaFetchers::set_addresses(std::unordered_map<model::BrokerId, base::Endpoint> addresses) {
  addresses_ = std::move(addresses);
  for (const auto& [leader, fetcher] : fetchers_) {
    const auto found = addresses_.find(leader);
    fetcher->set_address(found == addresses_.end() ? std::nullopt : std::optional(found->second));
  }
}

void ReplicaFetchers::follow(const std::shared_ptr<FollowedPartition>& partition) {
  if (stopping_) return;
  const auto leader = partition->following().leader;
  auto& fetcher = fetchers_[leader];
  if (!fetcher) {
    fetcher = std::make_unique<ReplicaFetcher>(config_, leader, runtime_, network_, counters_);
    const auto found = addresses_.find(leader);
    if (found != addresses_.end()) fetcher->set_address(found->second);
    fetcher->start();
  }
  fetcher->follow(partition);
}

void ReplicaFetchers::unfollow(const FollowedPartition& partition) {
  const auto found = fetchers_.find(partition.following().leader);
  if (found != fetchers_.end()) found->second->unfollow(partition.id());
}

void ReplicaFetchers::give_up() {
  stopping_ = true;
  for (const auto& [leader, fetcher] : fetchers_) fetcher->give_up();
}

asio::awaitable<void> ReplicaFetchers::stop() {
  give_up();
  for (const auto& [leader, fetcher] : fetchers_) co_await fetcher->stop();
}

}  // namespace mq::replication
