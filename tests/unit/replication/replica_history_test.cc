// Random histories of three replicas of one partition: elections from the ISR, power cuts, answers
// that come late, followers that have not heard of a new leader. The followers and the logs' rules
// are the broker's; the leader's side is as simple as can be.

#include <set>

#include "base/mutants.h"
#include "follower_fixture.h"

namespace mq::replication {
namespace {

using model::BrokerId;
using model::LeaderEpoch;
using model::Offset;
using testing::ModelLog;
using testing::ScriptedLeader;

class History {
 public:
  explicit History(std::uint64_t seed) : simulator_(seed), random_(seed * 7 + 1) {
    for (int i = 0; i < kReplicas; ++i) replicas_.push_back(std::make_unique<Replica>());
    for (int i = 0; i < kReplicas; ++i) isr_.insert(i);
    elect(0);
  }
  ~History() {
    for (const auto& replica : replicas_) stop_following(*replica);
  }

  /// What went wrong; empty: nothing.
  std::string run(int steps) {
    for (int i = 0; i < steps && wrong_.empty(); ++i) {
      step();
      check();
    }
    if (wrong_.empty()) heal();
    return wrong_;
  }

 private:
  static constexpr int kReplicas = 3;

  struct Replica {
    ModelLog log{false};
    std::shared_ptr<FollowedPartition> follower;
    // What the leader knows of it, in its epoch.
    bool subscribed = false;
    std::uint32_t number = 0;
    Offset sent{0};
    Offset confirmed{0};
    std::deque<ScriptedLeader::Answer> answers;  // on their way
  };

  int some() { return static_cast<int>(random_.below(kReplicas)); }
  Replica& of(int broker) { return *replicas_[static_cast<std::size_t>(broker)]; }
  void settle() { simulator_.run_for(std::chrono::milliseconds(1)); }
  void fail(const std::string& what) {
    if (!wrong_.empty()) return;
    wrong_ = what;
    for (int i = 0; i < kReplicas; ++i)
      wrong_ += fmt::format("\n  {}{}: {}", i, i == leader_ ? " leads" : "", of(i).log.text());
  }

  void step() {
    switch (random_.below(16)) {
      case 0:
      case 1:
      case 2:
        return append();
      case 3:
      case 4:
        return confirm(some());
      case 5:
      case 6:
      case 7:
      case 8:
        return fetch(some());
      case 9:
      case 10:
      case 11:
        return deliver(some());
      case 12:
        return disconnect(some());
      case 13:
        return random_.chance(0.4) ? elect_some() : learn(some());
      case 14:
        return random_.chance(0.3) ? power_cut(some()) : learn(some());
      default:
        return random_.chance(0.3) ? shrink(some()) : expand(some());
    }
  }

  void append() {
    const auto records = static_cast<int>(random_.between(1, 3));
    of(leader_).log.append_records(fmt::format("record {}", ++records_), records);
  }

  /// A flush: up to some batch.
  void confirm(int broker) {
    ModelLog& log = of(broker).log;
    std::vector<Offset> ends;
    for (const auto& batch : log.batches()) {
      if (batch.end > log.durable_offset()) ends.push_back(batch.end);
    }
    if (ends.empty()) return;
    log.confirm(ends[random_.below(ends.size())]);
    raise_high_watermark();
  }

  void follow(int broker) {
    Replica& replica = of(broker);
    stop_following(replica);
    replica.log.restart_process();
    replica.follower = std::make_shared<FollowedPartition>(
        runtime_, replica.log, counters_, memory_, Following{BrokerId(leader_), epoch_});
  }
  void stop_following(Replica& replica) {
    if (!replica.follower) return;
    replica.follower->close();
    mq::testing::run(simulator_, replica.follower->closed());
    replica.follower.reset();
  }

  void elect_some() {
    std::vector<int> candidates(isr_.begin(), isr_.end());
    elect(candidates[random_.below(candidates.size())]);
  }
  void elect(int broker) {
    epoch_ = LeaderEpoch(std::max(epoch_.value(), 0) + static_cast<int>(random_.between(1, 2)));
    const int before = std::exchange(leader_, broker);
    Replica& leader = of(broker);
    stop_following(leader);
    if (!leader.log.start_epoch(epoch_)) return fail("the epoch cannot start");
    epoch_start_ = leader.log.log_end_offset();
    high_watermark_ = leader.log.high_watermark_hint();
    for (const auto& replica : replicas_) replica->subscribed = false;
    // Who led before hears of it with the next image, as the others do.
    if (before >= 0 && before != leader_) follow(before);
  }
  /// Hears of the newest election.
  void learn(int broker) {
    if (broker == leader_) return;
    const auto& follower = of(broker).follower;
    if (!follower || follower->following() != Following{BrokerId(leader_), epoch_}) follow(broker);
  }

  void power_cut(int broker) {
    Replica& replica = of(broker);
    stop_following(replica);
    replica.answers.clear();
    replica.subscribed = false;
    std::vector<Offset> ends{replica.log.durable_offset()};
    for (const auto& batch : replica.log.batches()) {
      if (batch.end > replica.log.durable_offset()) ends.push_back(batch.end);
    }
    const Offset end = ends[random_.below(ends.size())];
    replica.log.lose_above(end);
    replica.log.confirm(replica.log.log_end_offset());  // recovery syncs what it keeps
    if (broker == leader_) elect_some();
    learn(broker);
  }

  void fetch(int broker) {
    Replica& replica = of(broker);
    if (broker == leader_ || !replica.follower) return;
    const bool knows = replica.follower->following().leader_epoch == epoch_;
    if (const auto subscribe = replica.follower->subscribe(++numbers_)) {
      ScriptedLeader::Answer answer;
      if (knows) {
        answer = leaders_answer(replica, *subscribe);
      } else {
        answer.result.number = subscribe->number;
        answer.result.status = protocol::Status::of(protocol::WireError::fenced_leader_epoch, "");
      }
      replica.answers.push_back(std::move(answer));
      return;
    }
    if (!knows) return;
    const auto position = replica.follower->take_position();
    if (!replica.subscribed) return;
    if (position && position->number == replica.number) replica.confirmed = position->durable;
    raise_high_watermark();
    send(replica);
  }
  ScriptedLeader::Answer leaders_answer(Replica& replica,
                                        const protocol::ReplicaSubscribe& subscribe) {
    auto answer = empty_answer(subscribe.number);
    const ModelLog& log = of(leader_).log;
    const auto parts = divergence(log.epoch_starts(), log.log_end_offset(), subscribe.last_epoch,
                                  subscribe.appended);
    if (parts) {
      answer.result.diverging = protocol::Divergence{parts->epoch, parts->end_offset};
      return answer;
    }
    replica.subscribed = true;
    replica.number = subscribe.number;
    replica.sent = subscribe.appended;
    replica.confirmed = subscribe.durable;
    return answer;
  }
  ScriptedLeader::Answer empty_answer(std::uint32_t number) {
    ScriptedLeader::Answer answer;
    answer.result.number = number;
    answer.result.leader_epoch = epoch_;
    answer.result.high_watermark = high_watermark_;
    answer.result.log_start = of(leader_).log.log_start_offset();
    return answer;
  }
  void send(Replica& replica) {
    ModelLog& log = of(leader_).log;
    const auto read = log.read(replica.sent, log.log_end_offset(), random_.between(1, 400));
    auto answer = empty_answer(replica.number);
    answer.owner = base::BufferPool::shared().take(std::max<std::size_t>(read->bytes, 1));
    std::size_t at = 0;
    for (const auto& piece : read->batches) {
      std::memcpy(answer.owner.data() + at, piece.bytes.data(), piece.bytes.size());
      at += piece.bytes.size();
    }
    answer.batches = base::Bytes(answer.owner.data(), at);
    replica.sent = read->end_offset;
    replica.answers.push_back(std::move(answer));
  }

  void deliver(int broker) {
    Replica& replica = of(broker);
    if (replica.answers.empty()) return;
    const auto answer = std::move(replica.answers.front());
    replica.answers.pop_front();
    if (replica.follower) replica.follower->take(answer.result, answer.owner, answer.batches);
    simulator_.run_for(std::chrono::milliseconds(random_.below(3) * 700));
  }
  void disconnect(int broker) {
    Replica& replica = of(broker);
    replica.subscribed = false;
    // What was sent on the old connection may have been read already.
    if (random_.chance(0.5)) replica.answers.clear();
    if (replica.follower) replica.follower->disconnected();
  }

  void shrink(int broker) {
    if (broker != leader_) isr_.erase(broker);
    raise_high_watermark();
  }
  void expand(int broker) {
    const Replica& replica = of(broker);
    if (!replica.subscribed || replica.confirmed < high_watermark_ ||
        replica.confirmed < epoch_start_)
      return;
    isr_.insert(broker);
  }

  void raise_high_watermark() {
    Offset confirmed = of(leader_).log.durable_offset();
    for (const int broker : isr_) {
      if (broker == leader_) continue;
      if (!of(broker).subscribed) return;
      confirmed = std::min(confirmed, of(broker).confirmed);
    }
    if (confirmed <= high_watermark_) return;
    high_watermark_ = confirmed;
    of(leader_).log.set_high_watermark_hint(confirmed);
    const auto& batches = of(leader_).log.batches();
    for (std::size_t i = 0; i < batches.size() && batches[i].end <= confirmed; ++i) {
      if (i == committed_.size()) committed_.push_back(batches[i].bytes);
      if (batches[i].bytes != committed_[i]) return fail("another record was committed there");
    }
  }

  [[nodiscard]] bool has_all_committed(const ModelLog& log) const {
    if (log.batches().size() < committed_.size()) return false;
    for (std::size_t i = 0; i < committed_.size(); ++i) {
      if (log.batches()[i].bytes != committed_[i]) return false;
    }
    return true;
  }

  void check() {
    for (const int broker : isr_) {
      if (!has_all_committed(of(broker).log))
        fail(fmt::format("broker {} of the ISR lacks committed records", broker));
    }
    if (counters_.get("records_truncated_below_high_watermark_total").value() > 0)
      fail("records below a high watermark were cut");
    // What two replicas hold to be committed is the same.
    for (int a = 0; a < kReplicas; ++a) {
      for (int b = 0; b < a; ++b) compare(a, b);
    }
  }
  void compare(int a, int b) {
    const Offset end = std::min(of(a).log.high_watermark_hint(), of(b).log.high_watermark_hint());
    const auto& one = of(a).log.batches();
    const auto& other = of(b).log.batches();
    for (std::size_t i = 0; i < one.size() && one[i].end <= end; ++i) {
      if (i < other.size() && one[i].bytes == other[i].bytes) continue;
      return fail(fmt::format("brokers {} and {} differ below {}", a, b, end));
    }
  }

  /// Nothing fails any more: all become one.
  void heal() {
    for (int broker = 0; broker < kReplicas; ++broker) {
      disconnect(broker);
      of(broker).answers.clear();
      learn(broker);
    }
    for (int round = 0; round < 400; ++round) {
      for (int broker = 0; broker < kReplicas; ++broker) {
        fetch(broker);
        while (!of(broker).answers.empty()) deliver(broker);
        of(broker).log.confirm(of(broker).log.log_end_offset());
        expand(broker);
      }
      raise_high_watermark();
    }
    check();
    for (int broker = 0; broker < kReplicas; ++broker) {
      if (of(broker).log.text() != of(leader_).log.text()) fail("the logs do not become one");
    }
    if (isr_.size() != kReplicas) fail("the ISR does not become whole");
  }

  mq::testing::Simulator simulator_;
  mq::testing::SimRuntime runtime_{simulator_};
  mq::testing::SimRandom random_;
  base::Counters counters_;
  net::MemoryBudget memory_{runtime_, 1 << 20};
  std::vector<std::unique_ptr<Replica>> replicas_;
  int leader_ = -1;
  LeaderEpoch epoch_;
  Offset epoch_start_{0};
  Offset high_watermark_{0};
  std::set<int> isr_;
  std::vector<std::string> committed_;
  std::uint32_t numbers_ = 0;
  int records_ = 0;
  std::string wrong_;
};

constexpr int kHistories = 150;
constexpr int kSteps = 400;

std::string first_wrong_history(int histories) {
  for (int seed = 1; seed <= histories; ++seed) {
    const std::string wrong = History(static_cast<std::uint64_t>(seed)).run(kSteps);
    if (!wrong.empty()) return fmt::format("seed {}: {}", seed, wrong);
  }
  return {};
}

// REP-1, REP-2
TEST(ReplicaHistory, WhatIsCommittedStaysOnWhoeverMayLead) {
  EXPECT_EQ(first_wrong_history(kHistories), "");
}

TEST(ReplicaHistory, CuttingToTheHighWatermarkWouldBeNoticed) {
  const base::EnabledMutant mutant("truncate_to_high_watermark");
  EXPECT_NE(first_wrong_history(kHistories), "");
}

TEST(ReplicaHistory, TakingLateAnswersWouldBeNoticed) {
  const base::EnabledMutant mutant("late_replica_answers_taken");
  EXPECT_NE(first_wrong_history(20 * kHistories), "");  // needs a rare moment
}

}  // namespace
}  // namespace mq::replication
