#include "broker/replica_feed.h"

#include "base/mutants.h"
#include "broker/error_map.h"
#include "storage/batch_head.h"

namespace mq::broker {

using protocol::ReplicaFetchResult;
using protocol::WireError;

namespace {

/// From one partition at a time, so that all get on.
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

}  // namespace

struct ReplicaFeed::Subscription final : replication::LogListener {
  explicit Subscription(ReplicaFeed& owner) : feed(owner) {}
  void log_moved() override { feed.ready(*this); }

  ReplicaFeed& feed;
  model::PartitionId partition;
  std::uint32_t number = 0;
  std::uint64_t name = 0;  ///< at the partition
  model::LeaderEpoch leader_epoch;
  model::Offset send_from;  ///< what is below has been sent; it confirms nothing
  model::Offset told_high_watermark;
  model::Offset told_log_start;
  std::optional<ReplicaFetchResult> last_word;  ///< why nothing comes until it subscribes again
  /// It ends below this log: is told where to begin once that has been looked up.
  std::optional<protocol::ReplicaSubscribe> below;
  bool ended = false;  ///< that has been said
  bool queued = false;
  bool cold = false;  ///< waits for the disk, or its data is being read
  bool waits_for_turn = false;
  std::size_t paid = 0;  ///< out of the allowance, for what is being read
  std::optional<base::Result<storage::ReadResult>> from_disk;
  net::Lease memory;  ///< of from_disk
};

ReplicaFeed::ReplicaFeed(Worker& worker, std::function<void()> wake)
    : worker_(worker), wake_(std::move(wake)) {}
ReplicaFeed::~ReplicaFeed() = default;

void ReplicaFeed::begin(model::IsrMember follower) {
  follower_ = follower;
  subscriptions_.clear();
  ready_.clear();
  cold_.clear();
  waiting_for_turn_.clear();
}

void ReplicaFeed::unsubscribe(const model::PartitionId& partition) {
  subscriptions_.erase(partition);
}

replication::Partition* ReplicaFeed::partition_of(const Subscription& subscription) const {
  auto* partition = worker_.partitions().find(subscription.partition);
  if (!partition) return nullptr;
  const bool same = partition->leader_epoch() == subscription.leader_epoch;
  return same || MQ_MUTANT("older_epoch_fetches_count") ? partition : nullptr;
}

void ReplicaFeed::subscribe(const protocol::ReplicaSubscribe& from) {
  const bool too_many = subscriptions_.size() >= worker_.core().limits.partitions;
  if (too_many && !subscriptions_.contains(from.partition)) return;
  auto& place = subscriptions_[from.partition];
  place = std::make_unique<Subscription>(*this);
  Subscription& subscription = *place;
  subscription.partition = from.partition;
  subscription.number = from.number;
  subscription.leader_epoch = from.leader_epoch;
  subscription.send_from = from.appended;
  ready(subscription);  // how it begins is news
  auto* partition = worker_.partitions().find(from.partition);
  if (!partition) {
    subscription.last_word.emplace().status = worker_.core().missing(from.partition);
    return;
  }
  if (from.appended < partition->log_start_offset() &&
      partition->log_start_offset() < partition->log_end_offset() && !partition->failure()) {
    subscription.send_from = partition->log_start_offset();
    subscription.below = from;
    return;
  }
  begin(subscription, *partition, from);
}

void ReplicaFeed::begin(Subscription& subscription, replication::Partition& partition,
                        const protocol::ReplicaSubscribe& from) {
  const auto begun = partition.subscribe(follower_, from);
  if (!begun || begun->diverging) {
    auto& word = subscription.last_word.emplace();
    word.leader_epoch = partition.leader_epoch();
    word.high_watermark = partition.high_watermark();
    word.log_start = partition.log_start_offset();
    if (begun) {
      word.diverging.emplace(
          protocol::Divergence{begun->diverging->epoch, begun->diverging->end_offset});
    } else {
      word.status =
          worker_.core().status(to_wire(begun.error()),
                                fmt::format("{}: {}", worker_.core().partition_name(from.partition),
                                            begun.error().message()));
    }
    return;
  }
  subscription.name = begun->subscription;
  partition.add_listener(subscription);
}

/// The log start may lie inside a batch, and batches go whole: a replica that has nothing of it
/// begins where the batch does. True when there is something to be told now.
bool ReplicaFeed::tell_where_to_begin(Subscription& subscription,
                                      replication::Partition& partition) {
  if (subscription.cold && !subscription.from_disk) return false;
  base::Result<storage::ReadResult> data = make_error_code(storage::StorageErrc::not_cached);
  if (subscription.from_disk) {
    data = *std::exchange(subscription.from_disk, std::nullopt);
    subscription.cold = false;
    subscription.memory.give_back();
  } else {
    data = partition.read_for_follower(subscription.send_from, 1);
  }
  if (!data && data.error() == make_error_code(storage::StorageErrc::not_cached)) {
    read_ahead(subscription);
    return false;
  }
  auto from = *std::exchange(subscription.below, std::nullopt);
  auto beginning = subscription.send_from;
  if (data && !data->batches.empty())
    beginning = storage::head_at(data->batches.front().bytes.data()).base;
  // One that is empty and stands there already has all that it could have.
  const bool empty = from.last_epoch == model::LeaderEpoch();
  if (empty && from.appended == beginning) from.appended = from.durable = subscription.send_from;
  // What it has of that batch is no part of this log: it begins anew behind that, and then below.
  if (from.appended > beginning) beginning = subscription.send_from;
  begin(subscription, partition, from);
  if (subscription.last_word) subscription.last_word->log_start = beginning;
  return true;
}

void ReplicaFeed::note(const protocol::ReplicaPosition& position) {
  const auto found = subscriptions_.find(position.partition);
  if (found == subscriptions_.end()) return;
  const Subscription& subscription = *found->second;
  if (subscription.number != position.number || subscription.last_word || subscription.below)
    return;
  if (auto* partition = partition_of(subscription)) {
    partition->follower_has({follower_, subscription.name, subscription.leader_epoch,
                             position.appended, position.durable, position.log_start});
  }
}

void ReplicaFeed::ready(Subscription& subscription) {
  if (!std::exchange(subscription.queued, true)) ready_.push_back(subscription.partition);
  if (!std::exchange(woken_, true)) wake_();
}

void ReplicaFeed::collect(ReplicaNews& news) {
  woken_ = false;
  for (std::size_t left = ready_.size(); left > 0 && !ready_.empty() && !news.full(); --left) {
    const auto id = ready_.front();
    ready_.pop_front();
    const auto found = subscriptions_.find(id);
    if (found == subscriptions_.end() || !found->second->queued) continue;
    Subscription& subscription = *found->second;
    subscription.queued = false;
    const bool more = collect_one(subscription, news);
    if (more) ready(subscription);
  }
  // What did not fit any more is told with the next request.
  if (!ready_.empty() && !std::exchange(woken_, true)) wake_();
  if (news.last_call) add_high_watermarks(news);
}

bool ReplicaFeed::collect_one(Subscription& subscription, ReplicaNews& news) {
  if (subscription.ended) return false;
  if (subscription.last_word) {
    subscription.ended = true;
    auto& result = news.results.emplace_back(std::move(*subscription.last_word));
    result.partition = subscription.partition;
    result.number = subscription.number;
    return false;
  }
  auto* partition = partition_of(subscription);
  if (!partition) {
    refuse(subscription, worker_.core().missing(subscription.partition), news);
    return false;
  }
  if (const auto failed = partition->failure()) {
    refuse(subscription, *partition, failed, news);
    return false;
  }
  if (subscription.below) return tell_where_to_begin(subscription, *partition);
  if (subscription.from_disk) return take_read_ahead(subscription, *partition, news);
  const bool all_sent = subscription.send_from >= partition->log_end_offset();
  if (all_sent || subscription.cold) {
    const bool told = partition->log_start_offset() == subscription.told_log_start;
    if (!told) add(subscription, *partition, news, std::nullopt);
    return false;
  }
  if (has_to_wait(subscription, *partition)) return false;
  const std::size_t room = news.bytes_max - std::min(news.bytes, news.bytes_max);
  const bool catches_up = worker_.core().catch_up.limited() && !partition->in_sync(follower_);
  const std::size_t piece = catches_up ? std::min(kPieceBytes, allowance_) : kPieceBytes;
  auto data = partition->read_for_follower(subscription.send_from, std::min(room, piece));
  if (!data) {
    if (data.error() == make_error_code(storage::StorageErrc::not_cached)) {
      if (catches_up) pay_ahead(subscription, piece);
      read_ahead(subscription);
    } else {
      refuse(subscription, *partition, data.error(), news);
    }
    return false;
  }
  // The first batch always comes; if it does not fit, it is the first of the next answer.
  if (news.bytes > 0 && data->bytes > room) return true;
  add(subscription, *partition, news, *std::move(data));
  return subscription.send_from < partition->log_end_offset();
}

void ReplicaFeed::add(Subscription& subscription, replication::Partition& partition,
                      ReplicaNews& news, std::optional<storage::ReadResult> data) {
  auto& result = news.results.emplace_back();
  result.partition = subscription.partition;
  result.number = subscription.number;
  result.leader_epoch = subscription.leader_epoch;
  result.high_watermark = subscription.told_high_watermark = partition.high_watermark();
  result.log_start = subscription.told_log_start = partition.log_start_offset();
  if (!data) return;
  result.payload_bytes = static_cast<std::uint32_t>(data->bytes);
  news.bytes += data->bytes;
  count_as_catching_up(subscription, partition, data->bytes);
  for (auto& piece : data->batches) news.batches.push_back(std::move(piece));
  subscription.send_from = data->end_offset;
  if (MQ_MUTANT("send_cursor_confirms")) {
    partition.follower_has({follower_, subscription.name, subscription.leader_epoch,
                            data->end_offset, data->end_offset});
  }
}

void ReplicaFeed::refuse(Subscription& subscription, protocol::Status status, ReplicaNews& news) {
  subscription.ended = true;
  if (subscription.is_linked()) subscription.unlink();
  auto& result = news.results.emplace_back();
  result.partition = subscription.partition;
  result.number = subscription.number;
  result.status = std::move(status);
}

void ReplicaFeed::refuse(Subscription& subscription, const replication::Partition& partition,
                         base::Error error, ReplicaNews& news) {
  const Core& core = worker_.core();
  auto wire = to_wire(error);
  if (core.stopping && wire == WireError::partition_offline) wire = WireError::shutting_down;
  refuse(subscription,
         core.status(wire, fmt::format("{}: {}", core.partition_name(subscription.partition),
                                       error.message())),
         news);
  news.results.back().leader_epoch = partition.leader_epoch();
  // Where to begin is said to who subscribes.
  if (wire != WireError::offset_out_of_range)
    news.results.back().log_start = partition.log_start_offset();
}

/// It is not in sync, and its turn has not come. All that wait here have one turn together.
bool ReplicaFeed::has_to_wait(Subscription& subscription, const replication::Partition& partition) {
  auto& pace = worker_.core().catch_up;
  if (!pace.limited()) return false;
  if (partition.in_sync(follower_)) return subscription.waits_for_turn = false;
  if (subscription.waits_for_turn) return true;
  if (allowance_ > 0) return false;
  const auto now = worker_.runtime().now();
  if (!turn_) turn_ = pace.reserve(kPieceBytes, now);
  if (*turn_ <= now) {
    turn_.reset();
    allowance_ = kPieceBytes;
    return false;
  }
  subscription.waits_for_turn = true;
  waiting_for_turn_.push_back(subscription.partition);
  arm_turn();
  return true;
}

void ReplicaFeed::arm_turn() {
  if (std::exchange(turn_armed_, true)) return;
  worker_.runtime().start_timer(*turn_, [weak = weak_from_this()] {
    const auto feed = weak.lock();
    if (!feed) return;
    feed->turn_armed_ = false;
    feed->begin_turn();
  });
}

/// They are asked again, in the order in which they began to wait.
void ReplicaFeed::begin_turn() {
  const auto waiting = std::exchange(waiting_for_turn_, {});
  for (const auto& id : waiting) {
    const auto found = subscriptions_.find(id);
    if (found == subscriptions_.end() || !found->second->waits_for_turn) continue;
    found->second->waits_for_turn = false;
    ready(*found->second);
  }
}

/// What the disk is asked for comes later and is sent whenever it comes: others wait for it from
/// now on.
void ReplicaFeed::pay_ahead(Subscription& subscription, std::size_t bytes) {
  subscription.paid = std::min(bytes, allowance_);
  allowance_ -= subscription.paid;
}

void ReplicaFeed::count_as_catching_up(Subscription& subscription,
                                       const replication::Partition& partition, std::size_t bytes) {
  auto& pace = worker_.core().catch_up;
  allowance_ += std::exchange(subscription.paid, 0);
  if (!pace.limited() || partition.in_sync(follower_)) return;
  worker_.core().counters.get("replica_catch_up_bytes_total").add(static_cast<std::int64_t>(bytes));
  const std::size_t allowed = std::min(allowance_, bytes);
  allowance_ -= allowed;
  // More than its turn was for: the next ones wait for it.
  if (bytes > allowed) pace.reserve(bytes - allowed, worker_.runtime().now());
}

bool ReplicaFeed::take_read_ahead(Subscription& subscription, replication::Partition& partition,
                                  ReplicaNews& news) {
  const auto& found = *subscription.from_disk;
  if (found && news.bytes > 0 && news.bytes + found->bytes > news.bytes_max) return true;
  auto data = std::move(*subscription.from_disk);
  subscription.from_disk.reset();
  subscription.cold = false;
  subscription.memory.give_back();  // from here on the answer's own lease covers it
  if (!data) {
    refuse(subscription, partition, data.error(), news);
    return false;
  }
  add(subscription, partition, news, *std::move(data));
  return subscription.send_from < partition.log_end_offset();
}

void ReplicaFeed::read_ahead(Subscription& subscription) {
  subscription.cold = true;
  cold_.push_back(subscription.partition);
  if (!std::exchange(reading_, true))
    worker_.tasks().spawn("read for a follower", read_cold(shared_from_this()));
}

/// One after the other. A subscription that ended meanwhile, or began anew, does not get it.
asio::awaitable<void> ReplicaFeed::read_cold(std::shared_ptr<ReplicaFeed> self) {
  (void)self;
  while (!cold_.empty()) {
    const auto id = cold_.front();
    cold_.pop_front();
    const auto found = subscriptions_.find(id);
    if (found == subscriptions_.end() || !found->second->cold || found->second->from_disk) continue;
    const auto number = found->second->number;
    const auto name = found->second->name;
    const auto from = found->second->send_from;
    const auto partition = worker_.partitions().share(id);
    net::Lease memory;
    if (worker_.answer_budget().try_take(kPieceBytes))
      memory = net::Lease(worker_.answer_budget(), kPieceBytes);
    // Without memory it gets on all the same, a batch at a time.
    const std::size_t piece = found->second->paid > 0 ? found->second->paid : kPieceBytes;
    const std::size_t bytes_max = memory.bytes() > 0 ? piece : 1;
    base::Result<storage::ReadResult> data = make_error_code(replication::ReplicationErrc::closed);
    if (partition) {
      worker_.core().hot.fetch_disk_reads.add();
      data = co_await partition->read_from_disk_for_follower(from, bytes_max);
    }
    const auto again = subscriptions_.find(id);
    if (again == subscriptions_.end()) continue;
    Subscription& subscription = *again->second;
    if (subscription.number != number || subscription.name != name || !subscription.cold) continue;
    subscription.from_disk.emplace(std::move(data));
    subscription.memory = std::move(memory);
    ready(subscription);
  }
  reading_ = false;
}

void ReplicaFeed::add_high_watermarks(ReplicaNews& news) {
  for (const auto& [id, subscription] : subscriptions_) {
    if (news.full()) return;
    if (subscription->ended || subscription->last_word || subscription->below) continue;
    auto* partition = partition_of(*subscription);
    if (!partition || partition->failure()) continue;
    if (partition->high_watermark() != subscription->told_high_watermark)
      add(*subscription, *partition, news, std::nullopt);
  }
}

}  // namespace mq::broker
