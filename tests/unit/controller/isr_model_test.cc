// The rules of elections and ISRs against a model of logs: three brokers that replicate, die, lose
// what they had not synced, lose their sessions and know late of everything, in any order. What was
// confirmed once is with everybody who can be elected, until a loss is said to be possible.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "controller/elections.h"

namespace mq::controller {
namespace {

using model::BrokerEpoch;
using model::BrokerId;
using model::IsrMember;
using model::LeaderEpoch;

struct Record {
  int number;
  std::int32_t leader_epoch;
  friend bool operator==(const Record&, const Record&) = default;
};
using Log = std::vector<Record>;

bool begins_with(const Log& log, const Log& prefix) {
  return log.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), log.begin());
}
std::size_t common(const Log& one, const Log& other) {
  const auto parted = std::ranges::mismatch(one, other);
  return static_cast<std::size_t>(parted.in1 - one.begin());
}

/// What a broker knows of the partition, maybe an old state.
struct View {
  PartitionState state;
  std::int32_t version = -1;
};

/// What the leader has heard of a follower in its epoch.
struct Progress {
  BrokerEpoch epoch;
  std::size_t end = 0;
};

struct Broker {
  bool running = true;
  bool reported = false;
  std::int64_t epoch = 0;         ///< of its registration
  std::int64_t intact_since = 0;  ///< as its next report says
  bool suspect = false;           ///< it may have lost records, and has not registered since
  Log log;
  View view;
  // As a leader
  std::map<BrokerId, Progress> followers;
  std::size_t start_end = 0;
  std::size_t high_watermark = 0;
  std::optional<protocol::IsrProposal> asked;
};

/// Mistakes that the model has to find.
enum class Mistake { none, lossy_counts_as_intact, any_version, outsiders_are_elected };

class World {
 public:
  World(std::uint64_t seed, bool power_is_lost, Mistake mistake)
      : random_(seed), power_is_lost_(power_is_lost), mistake_(mistake) {
    std::vector<IsrMember> all;
    for (int id = 1; id <= 3; ++id) {
      all.push_back({BrokerId(id), BrokerEpoch(0)});
      brokers_[BrokerId(id)].reported = true;
      live_.insert(BrokerId(id));
    }
    state_ = first_state(all, static_cast<std::uint32_t>(1 + pick(3)));
  }

  /// What is wrong, or nothing.
  std::string run(int steps) {
    for (int step = 0; step < steps && wrong_.empty(); ++step) {
      something_happens();
      check();
    }
    return wrong_;
  }
  [[nodiscard]] int losses() const { return losses_; }
  [[nodiscard]] std::size_t confirmed() const { return most_confirmed_; }

 private:
  std::size_t pick(std::size_t below) { return random_() % below; }
  BrokerId any() { return replicas_[pick(3)]; }

  void something_happens() {
    const BrokerId id = any();
    const auto what = pick(200);
    if (what < 6) return harm(what, id);
    if (what < 14) return start(id);
    if (what < 25) return report(id);
    if (what < 60) return look(id);
    if (what < 75) return ask(id);
    if (what < 95) return answer();
    if (what < 120) return produce(id);
    return fetch(id);
  }
  void harm(std::size_t what, BrokerId id) {
    switch (what) {
      case 0:
        return die(id, false);
      case 1:
        return die(id, power_is_lost_);
      case 2:
      case 3:
        live_.erase(id);  // its session ends: it may run on
        leaving_.erase(id);
        return settle();
      case 4:
        if (!live_.contains(id)) return;
        leaving_.insert(id);
        return settle();
      default:
        return store(with_min_isr(state_, static_cast<std::uint32_t>(1 + pick(3))));
    }
  }

  // Brokers

  void die(BrokerId id, bool loses) {
    auto& broker = brokers_[id];
    if (!broker.running) return;
    broker.running = false;
    if (!loses) return;
    broker.suspect = true;
    broker.log.resize(pick(broker.log.size() + 1));
  }
  /// Also one that runs: under a new session.
  void start(BrokerId id) {
    auto& broker = brokers_[id];
    if (!broker.running || leaving_.contains(id)) {
      broker.view = {};
      broker.followers.clear();
      broker.asked.reset();
      broker.running = true;
    } else if (live_.contains(id)) {
      return;
    }
    ++broker.epoch;
    if (broker.suspect) broker.intact_since = broker.epoch;
    broker.suspect = false;
    broker.reported = false;
    live_.insert(id);
    leaving_.erase(id);
    settle();
  }
  void report(BrokerId id) {
    auto& broker = brokers_[id];
    if (!broker.running || broker.reported || !live_.contains(id)) return;
    broker.reported = true;
    protocol::ReplicaReport report;
    report.intact_since =
        BrokerEpoch(mistake_ == Mistake::lossy_counts_as_intact ? 0 : broker.intact_since);
    if (!broker.log.empty()) report.last_leader_epoch = LeaderEpoch(broker.log.back().leader_epoch);
    const auto before = state_;
    auto next =
        with_reported_replica(state_, replicas_, live(), id, BrokerEpoch(broker.epoch), report);
    if (was_best_of_remains(id, next ? *next : state_, report) || !next) return;
    const auto stood = [&](const std::vector<IsrMember>& members) {
      return std::ranges::find(members, id, &IsrMember::broker);
    };
    auto entry = stood(before.isr);
    if (entry == before.isr.end()) entry = stood(before.elr);
    const bool lossy = entry != before.isr.end() && entry != before.elr.end() &&
                       entry->epoch.value() < broker.intact_since;
    store(std::move(*next));
    if (!lossy || stood(state_.isr) == state_.isr.end()) return;
    for (const auto* members : {&before.isr, &before.elr, &before.last_known_elr}) {
      for (const auto& member : *members) {
        if (member.broker != id) wrong_ = "a lossy replica was elected while others were known";
      }
    }
    ++losses_;
    confirmed_.resize(common(confirmed_, broker.log));
  }
  /// All that are known to have had everything are back, and all may have lost something.
  bool was_best_of_remains(BrokerId id, const PartitionState& now,
                           const protocol::ReplicaReport& report) {
    const auto& broker = brokers_[id];
    if (now.leader != BrokerId()) return false;
    std::erase_if(remains_, [&](const auto& one) { return one.member.broker == id; });
    remains_.push_back({{id, BrokerEpoch(broker.epoch)},
                        report.last_leader_epoch,
                        model::Offset(static_cast<std::int64_t>(broker.log.size()))});
    auto elected = with_best_remains(now, live(), {}, remains_);
    if (!elected) return false;
    store(std::move(*elected));
    ++losses_;
    confirmed_.resize(common(confirmed_, brokers_.at(state_.leader).log));
    return true;
  }
  /// Learns of the state, and begins to lead or to follow.
  void look(BrokerId id) {
    auto& broker = brokers_[id];
    if (!broker.running || broker.view.version >= version_) return;
    const bool another =
        broker.view.version < 0 || broker.view.state.leader_epoch != state_.leader_epoch;
    broker.view = {state_, version_};
    if (another) {
      broker.followers.clear();
      broker.asked.reset();
      broker.start_end = broker.log.size();
      broker.high_watermark = 0;
    }
    if (broker.asked && version_ > broker.asked->version.value()) broker.asked.reset();
  }
  [[nodiscard]] bool leads(BrokerId id) const {
    const auto& broker = brokers_.at(id);
    const IsrMember self{id, BrokerEpoch(broker.epoch)};
    return broker.running && broker.view.state.leader == id &&
           std::ranges::count(broker.view.state.isr, self) > 0;
  }
  void produce(BrokerId id) {
    if (!leads(id)) return;
    auto& leader = brokers_[id];
    leader.log.push_back({++records_, leader.view.state.leader_epoch.value()});
    advance(id);
  }
  void fetch(BrokerId id) {
    auto& follower = brokers_[id];
    const auto from = follower.view.state.leader;
    if (!follower.running || from == BrokerId() || from == id || !leads(from)) return;
    auto& leader = brokers_[from];
    if (follower.view.state.leader_epoch != leader.view.state.leader_epoch) return;
    follower.log.resize(common(follower.log, leader.log));
    for (auto n = pick(3); n > 0 && follower.log.size() < leader.log.size(); --n)
      follower.log.push_back(leader.log[follower.log.size()]);
    leader.followers[id] = {BrokerEpoch(follower.epoch), follower.log.size()};
    advance(from);
  }
  /// The high watermark is what all of the maximal ISR have.
  void advance(BrokerId id) {
    auto& leader = brokers_[id];
    const auto& state = leader.view.state;
    if (state.isr.size() < state.min_isr) return;
    std::vector<IsrMember> all = state.isr;
    if (leader.asked) all.insert(all.end(), leader.asked->isr.begin(), leader.asked->isr.end());
    std::size_t end = leader.log.size();
    for (const auto& member : all) {
      if (member.broker == id) continue;
      const auto heard = leader.followers.find(member.broker);
      const bool counts = heard != leader.followers.end() && heard->second.epoch == member.epoch;
      end = std::min(end, counts ? heard->second.end : 0);
    }
    if (end <= leader.high_watermark) return;
    leader.high_watermark = end;
    const Log now(leader.log.begin(), leader.log.begin() + static_cast<std::ptrdiff_t>(end));
    if (!begins_with(now, confirmed_) && !begins_with(confirmed_, now))
      wrong_ = "two leaders confirmed different records";
    if (now.size() > confirmed_.size()) confirmed_ = now;
    most_confirmed_ = std::max(most_confirmed_, confirmed_.size());
  }
  void ask(BrokerId id) {
    if (!leads(id)) return;
    auto& leader = brokers_[id];
    if (leader.asked) return;
    const auto& state = leader.view.state;
    std::vector<IsrMember> isr;
    for (const auto& member : state.isr) {
      if (member.broker == id || pick(3) > 0) isr.push_back(member);
    }
    for (const auto& [follower, heard] : leader.followers) {
      const bool in = std::ranges::count(isr, follower, &IsrMember::broker) > 0;
      if (!in && heard.end >= std::max(leader.high_watermark, leader.start_end) && pick(4) > 0)
        isr.push_back({follower, heard.epoch});
    }
    protocol::IsrProposal proposal;
    proposal.leader_epoch = state.leader_epoch;
    proposal.version = model::PartitionVersion(leader.view.version);
    proposal.isr = std::move(isr);
    leader.asked = proposal;
    under_way_.push_back({{id, BrokerEpoch(leader.epoch)}, std::move(proposal)});
  }
  /// The controller gets to a request, early or late; nobody hears of a refusal.
  void answer() {
    if (under_way_.empty()) return;
    const auto at = under_way_.begin() + static_cast<std::ptrdiff_t>(pick(under_way_.size()));
    auto [leader, proposal] = *at;
    under_way_.erase(at);
    if (mistake_ == Mistake::any_version) {
      proposal.version = model::PartitionVersion(version_);
    }
    if (!live().has(leader)) return;
    if (check_proposal(state_, model::PartitionVersion(version_), replicas_, live(), leader,
                       proposal)) {
      // Asking for the ISR in force gives the proposal up.
      auto& asks = brokers_[leader.broker];
      if (asks.asked && *asks.asked == proposal && pick(2) == 0) look(leader.broker);
      return;
    }
    store(with_isr(state_, proposal.isr));
  }

  // The controller

  [[nodiscard]] LiveBrokers live() const {
    LiveBrokers brokers;
    for (const auto id : live_)
      brokers.add(id, BrokerEpoch(brokers_.at(id).epoch), leaving_.contains(id));
    return brokers;
  }
  void settle() {
    auto next = settled(state_, replicas_, live());
    if (!next) return;
    if (mistake_ == Mistake::outsiders_are_elected) {
      // As if everybody could be elected.
      for (const auto id : live_) {
        const IsrMember member{id, BrokerEpoch(brokers_.at(id).epoch)};
        if (next->leader == BrokerId()) next->elr.push_back(member);
      }
      if (auto again = settled(*next, replicas_, live())) next = again;
    }
    store(std::move(*next));
  }
  void store(PartitionState next) {
    if (next.leader_epoch < state_.leader_epoch) wrong_ = "the leader epoch fell";
    const auto led_as = [](const PartitionState& state) {
      const auto found = std::ranges::find(state.isr, state.leader, &IsrMember::broker);
      return found == state.isr.end() ? IsrMember{} : *found;
    };
    if (next.leader != BrokerId()) {
      if (led_as(next).broker != next.leader) wrong_ = "the leader is not in the ISR";
      if (next.leader_epoch == state_.leader_epoch && led_as(next) != led_as(state_))
        wrong_ = "two leaders of one epoch";
    }
    if (next.isr.size() >= next.min_isr && !next.elr.empty()) wrong_ = "an ELR beside a whole ISR";
    state_ = std::move(next);
    ++version_;
    if (state_.leader != BrokerId()) remains_.clear();
  }
  /// R1: what was confirmed is with everybody who can be elected.
  void check() {
    for (const auto* members : {&state_.isr, &state_.elr}) {
      for (const auto& member : *members) {
        const auto& broker = brokers_.at(member.broker);
        const bool candidate = broker.running && broker.epoch == member.epoch.value();
        if (candidate && !broker.suspect && !begins_with(broker.log, confirmed_))
          wrong_ =
              fmt::format("broker {} can be elected and lacks what was confirmed", member.broker);
      }
    }
  }

  std::mt19937_64 random_;
  bool power_is_lost_;
  Mistake mistake_;
  std::vector<BrokerId> replicas_{BrokerId(1), BrokerId(2), BrokerId(3)};
  PartitionState state_;
  std::int32_t version_ = 0;
  std::map<BrokerId, Broker> brokers_;
  std::set<BrokerId> live_;
  std::set<BrokerId> leaving_;
  std::vector<std::pair<IsrMember, protocol::IsrProposal>> under_way_;
  std::vector<Remains> remains_;
  Log confirmed_;
  std::size_t most_confirmed_ = 0;
  int records_ = 0;
  int losses_ = 0;
  std::string wrong_;
};

/// The first seed that finds something, and what.
std::string find_mistake(Mistake mistake, bool power_is_lost, std::uint64_t seeds) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    World world(seed, power_is_lost, mistake);
    const auto wrong = world.run(3000);
    if (!wrong.empty()) return fmt::format("seed {}: {}", seed, wrong);
  }
  return "";
}

// CTL-7, CTL-8
TEST(IsrModel, WhatWasConfirmedIsNeverLostByProcessesThatDie) {
  std::size_t confirmed = 0;
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    World world(seed, false, Mistake::none);
    EXPECT_EQ(world.run(3000), "") << "seed " << seed;
    EXPECT_EQ(world.losses(), 0) << "seed " << seed;
    confirmed += world.confirmed();
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(confirmed, 600u * 10);
}

TEST(IsrModel, LossesOfPowerAreSurvivedOrSaid) {
  int losses = 0;
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    World world(seed, true, Mistake::none);
    EXPECT_EQ(world.run(3000), "") << "seed " << seed;
    losses += world.losses();
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(losses, 0);
}

// The model itself: it finds each of these.
TEST(IsrModel, FindsMistakes) {
  EXPECT_NE(find_mistake(Mistake::lossy_counts_as_intact, true, 200), "");
  EXPECT_NE(find_mistake(Mistake::any_version, false, 2000), "");
  EXPECT_NE(find_mistake(Mistake::outsiders_are_elected, false, 200), "");
}

}  // namespace
}  // namespace mq::controller
