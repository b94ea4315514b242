#include "controller/leader_balance.h"

#include <algorithm>
#include <set>

namespace mq::controller {
namespace {

/// Each is an election; clients of so many at a time look for their leaders anew.
constexpr std::size_t kMovedAtOnce = 50;
/// Who has kept it for so long after a move is trusted like at first.
constexpr base::Duration kKept = std::chrono::minutes(30);
constexpr int kLostMax = 7;  // two hours with the usual minute

struct Share {
  std::size_t all = 0;
  std::size_t led_elsewhere = 0;
};

}  // namespace

bool LeaderBalance::is_due(const Known& known, base::TimePoint now) const {
  return known.since && now - *known.since >= rules_.after * (1 << known.lost) &&
         now >= known.not_before;
}

void LeaderBalance::look_at(const Seen& seen, base::TimePoint now) {
  auto found = known_.find(seen.id);
  if (seen.leads) {
    if (found == known_.end()) return;
    auto& known = found->second;
    known.since.reset();
    if (now >= known.not_before && (!known.moved_at || now - *known.moved_at >= kKept))
      known_.erase(found);
    return;
  }
  if (found == known_.end()) found = known_.emplace(seen.id, Known{}).first;
  auto& known = found->second;
  if (known.moved_at && now - *known.moved_at < kKept)
    known.lost = std::min(known.lost + 1, kLostMax);
  known.moved_at.reset();
  if (!seen.may_lead)
    known.since.reset();
  else if (!known.since)
    known.since = now;
}

std::vector<model::PartitionId> LeaderBalance::due(const std::vector<Seen>& all,
                                                   base::TimePoint now) {
  waiting_ = false;
  if (!rules_.on) return {};
  std::map<model::BrokerId, Share> shares;
  std::set<model::PartitionId> there;
  for (const auto& seen : all) {
    auto& share = shares[seen.first];
    ++share.all;
    if (!seen.leads) ++share.led_elsewhere;
    there.insert(seen.id);
    look_at(seen, now);
  }
  std::erase_if(known_, [&](const auto& one) { return !there.contains(one.first); });
  std::vector<model::PartitionId> moves;
  for (const auto& seen : all) {
    const auto found = known_.find(seen.id);
    if (seen.leads || found == known_.end() || !found->second.since) continue;
    const auto& share = shares[seen.first];
    if (share.led_elsewhere * 100 <= share.all * rules_.limit_percent) continue;
    if (is_due(found->second, now) && moves.size() < kMovedAtOnce)
      moves.push_back(seen.id);
    else
      waiting_ = true;
  }
  return moves;
}

void LeaderBalance::moved(const model::PartitionId& id, base::TimePoint now) {
  auto& known = known_[id];
  known.since.reset();
  known.moved_at = now;
}

void LeaderBalance::hold(const model::PartitionId& id, base::TimePoint until) {
  known_[id].not_before = until;
}

}  // namespace mq::controller
