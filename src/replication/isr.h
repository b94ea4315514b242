#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "base/runtime.h"
#include "model/isr.h"
#include "model/topic_settings.h"
#include "protocol/alter_isr.h"

namespace mq::replication {

using model::BrokerEpoch;
using model::BrokerId;
using model::IsrMember;
using model::LeaderEpoch;
using model::Offset;
using protocol::IsrState;

/// When a member of the ISR is to leave it.
struct IsrLimits {
  /// So long it may go without having caught up with what the leader had at some moment in between.
  base::Duration lag_time = std::chrono::seconds(10);
  /// Further behind than so many records it leaves earlier, if it has made no progress for half the
  /// lag time: a burst alone throws nobody out.
  std::int64_t lag_records = 100'000;
};

/// Where the leader's own log stands.
struct LeaderLog {
  Offset log_end;
  Offset confirmed_end;
  model::Durability durability = model::Durability::disk;
};

/// Who counts for a partition's high watermark, as its leader sees it in one leader epoch: the ISR
/// that the store has, the one that was asked for, and what each follower has said that it has.
///
/// Pure: no clock, no calls; the owner says when a change was asked for and what came of it. While
/// a change is under way the high watermark waits for the members before and after it (the maximal
/// ISR), until a state with a higher version is seen: a refusal, a time-out or the old state prove
/// nothing, since the request may still be on its way.
class Isr {
 public:
  struct Setup {
    IsrMember self;
    std::vector<BrokerId> replicas;  ///< itself among them
    IsrState state;
    Offset epoch_start;  ///< log end when the leader epoch began
    IsrLimits limits;
  };
  /// The epoch under which a broker is registered and live; nothing: it is not.
  using Registered = std::function<std::optional<BrokerEpoch>(BrokerId)>;

  Isr(Setup setup, base::TimePoint now);

  [[nodiscard]] const IsrState& state() const noexcept { return setup_.state; }
  [[nodiscard]] LeaderEpoch leader_epoch() const noexcept { return setup_.state.leader_epoch; }
  [[nodiscard]] Offset epoch_start() const noexcept { return setup_.epoch_start; }
  [[nodiscard]] const IsrLimits& limits() const noexcept { return setup_.limits; }
  /// The ISR that the store has is not below min_isr.
  [[nodiscard]] bool enough() const noexcept;
  /// Takes over what the store has if that is of this leader epoch and newer; true if so.
  bool take_state(const IsrState& state, base::TimePoint now);

  /// A follower begins to fetch in `epoch`, with a log that is a prefix of the leader's. What comes
  /// of earlier subscriptions counts no more. The result names this one; nothing: it is no replica,
  /// or the epoch another one.
  std::optional<std::uint64_t> subscribed(IsrMember follower, LeaderEpoch epoch,
                                          base::TimePoint now);
  struct Report {
    IsrMember follower;
    std::uint64_t subscription = 0;
    LeaderEpoch leader_epoch;
    Offset appended;
    Offset durable;
    Offset log_start{0};
  };
  /// What a follower has; false if that does not count: another leader epoch, registration or
  /// subscription.
  bool progressed(const Report& report, const LeaderLog& own, base::TimePoint now);
  /// The leader's log has grown from `end_before`.
  void appended(Offset end_before, const LeaderLog& own, base::TimePoint now);

  /// Everything below it is confirmed by the whole maximal ISR; nothing while the ISR is below
  /// min_isr or a member has not been heard of in this leader epoch.
  [[nodiscard]] std::optional<Offset> high_watermark(const LeaderLog& own) const;

  /// A follower outside of the ISR has caught up, registered or not.
  [[nodiscard]] bool somebody_caught_up(const LeaderLog& own, Offset high_watermark) const;
  /// The ISR to ask the controller for, if another one is wanted or an earlier request has to be
  /// given up, and none is under way. From now on its members count too; answered() has to follow.
  std::optional<protocol::IsrProposal> request(const LeaderLog& own, Offset high_watermark,
                                               const Registered& registered, base::TimePoint now);
  /// The request has ended, whatever became of it. take_state() tells what is known.
  void answered() noexcept { under_way_ = false; }

  /// One follower, for people.
  struct Follower {
    BrokerId broker;
    Offset confirmed_end;  ///< -1: it has not fetched in this leader epoch
    base::TimePoint caught_up_at;
  };
  [[nodiscard]] std::vector<Follower> followers(const LeaderLog& own) const;
  /// ISR and asked for.
  [[nodiscard]] std::vector<IsrMember> maximal() const;
  /// Members of the maximal ISR that may still have records below `start`.
  [[nodiscard]] std::vector<BrokerId> begins_lower(Offset start) const;
  /// This follower has all below `end`, or said so in this leader epoch.
  [[nodiscard]] bool has(const IsrMember& member, Offset end) const noexcept;
  /// One of these.
  [[nodiscard]] bool counts(const IsrMember& member) const noexcept;

 private:
  /// One follower.
  struct Progress {
    BrokerId broker;
    BrokerEpoch epoch;  ///< of the registration under which it subscribed; -1: it has not
    std::uint64_t subscription = 0;
    Offset appended;
    Offset durable;
    Offset log_start;
    base::TimePoint caught_up_at;
    base::TimePoint progressed_at;
    /// It has caught up with this moment as soon as it confirms `mark_end`.
    base::TimePoint mark_at;
    Offset mark_end;
  };

  [[nodiscard]] const Progress* find(BrokerId broker) const;
  [[nodiscard]] Progress* find(BrokerId broker);
  [[nodiscard]] static Offset confirmed(const Progress& follower, const LeaderLog& own);
  [[nodiscard]] bool caught_up(const Progress& follower, const LeaderLog& own,
                               Offset high_watermark) const;
  [[nodiscard]] bool lags(const Progress& follower, const LeaderLog& own,
                          base::TimePoint now) const;
  void forgive_absence(base::TimePoint now);
  [[nodiscard]] std::vector<IsrMember> wanted(const LeaderLog& own, Offset high_watermark,
                                              const Registered& registered,
                                              base::TimePoint now) const;
  void grow(const Progress& follower, const LeaderLog& own, Offset high_watermark,
            const Registered& registered, std::vector<IsrMember>& isr) const;

  Setup setup_;
  std::vector<Progress> followers_;
  std::uint64_t subscriptions_ = 0;
  std::vector<IsrMember> asked_;  ///< all that was asked for on top of the state's version
  bool under_way_ = false;
  base::TimePoint looked_at_;
};

}  // namespace mq::replication
