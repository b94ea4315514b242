#include "broker/replica_session.h"

#include "broker/hop.h"

namespace mq::broker {

using protocol::ReplicaFetchRequest;

namespace {

const model::PartitionId& partition_of(const model::PartitionId& id) { return id; }
template <class Entry>
const model::PartitionId& partition_of(const Entry& entry) {
  return entry.partition;
}

}  // namespace

ReplicaSession::ReplicaSession(Worker& worker)
    : worker_(worker),
      core_(worker.core()),
      feeds_(core_.workers.size()),
      news_(worker.runtime()) {}

/// On this session's worker; what it returns lives on `worker`.
ReplicaFeed& ReplicaSession::feed(Worker& worker) {
  auto& feed = feeds_[worker.index()];
  if (!feed) {
    feed = std::make_shared<ReplicaFeed>(
        worker, [weak = weak_from_this(), &here = worker.runtime(), &home = worker_.runtime()] {
          const auto wake = [weak] {
            if (const auto session = weak.lock()) session->woken();
          };
          if (here.executor() == home.executor()) return wake();
          home.post(wake);
        });
    const auto begin = [feed, follower = follower_] { feed->begin(follower); };
    if (&worker == &worker_) {
      begin();
    } else {
      worker.runtime().post(begin);
    }
  }
  return *feed;
}

/// Each entry to the feed of its partition's worker, in order.
template <class Entries, class Apply>
void ReplicaSession::give_out(Entries entries, Apply apply) {
  if (entries.empty()) return;
  std::vector<Entries> by_worker(core_.workers.size());
  for (auto& entry : entries)
    by_worker[core_.worker_of(partition_of(entry)).index()].push_back(std::move(entry));
  for (std::size_t i = 0; i < by_worker.size(); ++i) {
    if (by_worker[i].empty()) continue;
    Worker& worker = *core_.workers[i];
    const auto to = feed(worker).shared_from_this();
    auto work = [to, apply, own = std::move(by_worker[i])]() mutable {
      for (auto& entry : own) apply(*to, std::move(entry));
    };
    if (&worker == &worker_) {
      work();
    } else {
      worker.runtime().post(std::move(work));
    }
  }
}

void ReplicaSession::begin(model::IsrMember follower) {
  follower_ = follower;
  for (const auto& worker : core_.workers) {
    const auto feed = feeds_[worker->index()];
    if (!feed) continue;
    const auto anew = [feed, follower] { feed->begin(follower); };
    if (worker.get() == &worker_) {
      anew();
    } else {
      worker->runtime().post(anew);
    }
  }
}

void ReplicaSession::take(model::IsrMember follower, Request request, ReplicaFetchRequest ask) {
  if (follower != follower_) begin(follower);
  give_out(std::move(ask.unsubscribe),
           [](ReplicaFeed& feed, const model::PartitionId& id) { feed.unsubscribe(id); });
  give_out(
      std::move(ask.subscribe),
      [](ReplicaFeed& feed, const protocol::ReplicaSubscribe& entry) { feed.subscribe(entry); });
  give_out(std::move(ask.positions),
           [](ReplicaFeed& feed, const protocol::ReplicaPosition& entry) { feed.note(entry); });
  request.release_memory();
  const auto wait =
      std::chrono::milliseconds(std::min(ask.wait_ms, protocol::kReplicaFetchWaitMsMax));
  const std::size_t frame_room = core_.frame_bytes_max() - protocol::kHeaderBytesMax;
  const auto bytes_max = std::min<std::size_t>(ask.bytes_max, core_.limits.fetch_bytes);
  hold({std::move(request), worker_.runtime().now() + wait, std::min(bytes_max, frame_room), {}});
}

void ReplicaSession::refuse(Request request, protocol::Status status) {
  request.release_memory();
  hold({std::move(request), worker_.runtime().now(), 0, std::move(status)});
}

void ReplicaSession::hold(Held held) {
  Connection& connection = held.request.connection();
  held_.push_back(std::move(held));
  if (std::exchange(serving_, true)) return news_.notify_all();
  if (!is_linked()) connection.add_waiter(*this);
  worker_.tasks().spawn("replica session", serve(shared_from_this()));
}

void ReplicaSession::end() {
  begin({});
  news_.notify_all();
}

void ReplicaSession::woken() {
  has_news_ = true;
  news_.notify_all();
}

bool ReplicaSession::time_is_over() const {
  return held_.size() > protocol::kReplicaFetchesHeld || held_.back().refusal ||
         held_.front().request.connection().ending() ||
         held_.front().deadline <= worker_.runtime().now();
}

asio::awaitable<void> ReplicaSession::serve(std::shared_ptr<ReplicaSession> self) {
  (void)self;
  while (!held_.empty()) {
    if (!has_news_ && !time_is_over()) {
      co_await news_.wait_until(held_.front().deadline);
      continue;
    }
    if (held_.front().refusal) {
      held_.front().request.fail(*std::move(held_.front().refusal));
      held_.pop_front();
      continue;
    }
    const bool room = co_await held_.front().request.connection().room_for_answer();
    if (!room) break;
    ReplicaNews news;
    news.bytes_max = held_.front().bytes_max;
    const auto memory = co_await take_memory(news);
    // What comes from here on wakes it again.
    has_news_ = false;
    news.last_call = time_is_over();
    co_await collect(news);
    if (news.results.empty() && !time_is_over()) continue;
    memory->shrink(news.bytes);
    answer(news, memory);
  }
  for (Held& held : held_) held.request.finish_silently();
  held_.clear();
  serving_ = false;
}

/// As for any fetch: while the budget is spent by slow readers, a connection that has nothing
/// queued gets a little all the same.
asio::awaitable<std::shared_ptr<net::Lease>> ReplicaSession::take_memory(ReplicaNews& news) {
  constexpr std::size_t kFree = std::size_t{64} << 10;
  auto& budget = worker_.answer_budget();
  const auto lease = std::make_shared<net::Lease>();
  news.bytes_max = std::min(news.bytes_max, budget.limit());
  if (budget.try_take(news.bytes_max)) {
    *lease = net::Lease(budget, news.bytes_max);
  } else if (held_.front().request.connection().nothing_queued()) {
    news.bytes_max = std::min(news.bytes_max, kFree);
  } else {
    const std::size_t taken = co_await budget.take(std::min(news.bytes_max, kFree));
    news.bytes_max = taken;
    *lease = net::Lease(budget, taken);
  }
  co_return lease;
}

namespace {

asio::awaitable<void> collect_on(std::shared_ptr<ReplicaFeed> feed, ReplicaNews& news) {
  feed->collect(news);
  co_return;
}

}  // namespace

asio::awaitable<void> ReplicaSession::collect(ReplicaNews& news) {
  const std::size_t first = first_++;
  for (std::size_t i = 0; i < feeds_.size() && !news.full(); ++i) {
    const std::size_t index = (first + i) % feeds_.size();
    if (!feeds_[index]) continue;
    if (index == worker_.index()) {
      feeds_[index]->collect(news);
    } else {
      co_await run_on(core_.workers[index]->runtime(), collect_on(feeds_[index], news));
    }
  }
  // Those that were not asked keep what they have for the next request.
  if (news.full()) has_news_ = true;
}

void ReplicaSession::answer(ReplicaNews& news, std::shared_ptr<net::Lease> memory) {
  core_.hot.replica_answers.add();
  core_.hot.replica_bytes.add(static_cast<std::int64_t>(news.bytes));
  protocol::ReplicaFetchResponse response;
  response.envelope = core_.envelope();
  response.results = std::move(news.results);
  held_.front().request.answer(protocol::encode(response), std::move(news.batches),
                               std::move(memory));
  held_.pop_front();
}

}  // namespace mq::broker
