#include "sim/loss_audit.h"

#include <algorithm>

#include "metadata/znode_layout.h"
#include "sim/violation.h"

namespace mq::sim {
namespace {

using namespace std::chrono_literals;
using model::Offset;

/// README.md of the controller.
constexpr base::Duration kUncleanAfter = 30s;

}  // namespace

bool LossAudit::allowed(const model::PartitionId& id) const {
  for (const auto& [path, node] : world_.metadata->nodes) {
    if (!path.starts_with(std::string(metadata::layout::kTopics) + "/")) continue;
    const auto topic = metadata::decode_topic(node.value);
    if (!topic || topic->id != id.topic) continue;
    const auto set = topic->overrides.find("unclean_election");
    return set != topic->overrides.end() && set->second == "true";
  }
  return false;
}

Offset LossAudit::wrote_state(const model::PartitionId& id, const State& before, const State& now,
                              Offset shown, std::optional<Offset> whole) {
  const bool another = now.loss_epoch != before.loss_epoch;
  if (another) {
    check_election(id, before, now);
    check_start(id, before, now, whole);
    Loss loss{.epoch = now.loss_epoch,
              .leader = now.leader,
              .start = whole.value_or(now.loss_start),
              .shown = shown,
              .end = shown,
              .until = world_.runtime.now(),
              .complete = {},
              .past = {},
              .ends = {}};
    for (const auto* const members : {&before.isr, &before.elr}) {
      for (const auto& member : *members) {
        for (const auto& node : nodes_) {
          if (node->id() == member.broker.value() && node->down())
            loss.complete[node->id()] = node->disk_losses();
        }
      }
    }
    shown = std::min(shown, loss.start);
    ++count_;
    world_.records_given_up = true;
    if (on_loss_) on_loss_(id, loss.start);
    losses_[id].push_back(std::move(loss));
  }
  check_new_end(id, before, now);
  if (now.leader == model::BrokerId()) {
    leaderless_since_.try_emplace(id, world_.runtime.now());
  } else {
    leaderless_since_.erase(id);
  }
  return shown;
}

/// Somebody outside of ISR and ELR leads only after a while in which nobody in them could.
void LossAudit::check_election(const model::PartitionId& id, const State& before,
                               const State& now) const {
  require(now.loss_epoch == now.leader_epoch, "R11: {}: a loss in epoch {} is told in epoch {}",
          id.text(), now.loss_epoch, now.leader_epoch);
  const auto since = leaderless_since_.find(id);
  require(before.leader == model::BrokerId() && since != leaderless_since_.end() &&
              world_.runtime.now() - since->second >= kUncleanAfter,
          "R11: {}: records are given up for broker {} before 30 s without a leader are over",
          id.text(), now.leader);
}

/// All that may be lost, and no more; of two losses that nobody has acknowledged it is the lower.
void LossAudit::check_start(const model::PartitionId& id, const State& before, const State& now,
                            std::optional<Offset> whole) const {
  require(now.loss_start.value() >= 0, "R1: {}: it is not told from where on something is lost",
          id.text());
  if (!whole) return;
  const bool earlier = before.loss_epoch != model::LeaderEpoch() && before.loss_start.value() >= 0;
  const auto start = earlier ? std::min(before.loss_start, *whole) : *whole;
  require(now.loss_start == start,
          "R1: {}: the loss is told from {} on, the leader's log is certain up to {}{}", id.text(),
          now.loss_start, *whole,
          earlier ? fmt::format(", and {} was told before", before.loss_start) : "");
}

bool LossAudit::is_past(const model::PartitionId& id, model::LeaderEpoch epoch) const {
  const auto found = losses_.find(id);
  return found != losses_.end() && epoch < found->second.back().epoch;
}

void LossAudit::saw_past_leader(const ClusterNode& node, const model::PartitionId& id,
                                Offset high_watermark) {
  auto& loss = losses_.at(id).back();
  loss.end = std::max(loss.end, high_watermark);
  loss.until = world_.runtime.now();
  loss.past[node.id()] = {high_watermark, node.disk_losses()};
}

void LossAudit::saw_log(const model::PartitionId& id, model::LeaderEpoch epoch, Offset end) {
  auto& highest = ends_[id][epoch];
  highest = std::max(highest, end);
  const auto found = losses_.find(id);
  if (found == losses_.end()) return;
  if (auto& loss = found->second.back(); epoch < loss.epoch) loss.ends.insert(end);
}

bool LossAudit::may_be_lost(const model::PartitionId& id, std::int64_t offset,
                            base::TimePoint sent) const {
  const auto found = losses_.find(id);
  return found != losses_.end() && std::ranges::any_of(found->second, [&](const Loss& loss) {
           return offset >= loss.start.value() && offset < loss.end.value() && sent <= loss.until;
         });
}

void LossAudit::check_reported(const model::PartitionId& id, const State& now) const {
  const auto found = losses_.find(id);
  if (found == losses_.end()) return;
  for (const auto& loss : found->second) {
    require(now.loss_epoch >= loss.epoch && now.loss_start <= loss.start,
            "R1: {}: from {} on something is lost; the state says from {} on, in epoch {}",
            id.text(), loss.start, now.loss_start, now.loss_epoch);
    // One that did not end has said what it had when it began.
    const bool told = std::ranges::any_of(nodes_, [&](const auto& node) {
      const auto had = loss.complete.find(node->id());
      return had != loss.complete.end() && had->second == node->disk_losses();
    });
    require(!told || loss.shown <= loss.start || now.loss_end >= loss.shown,
            "R1: {}: [{}, {}) is lost; the state says up to {}, and who had it has come back",
            id.text(), loss.start, loss.shown, now.loss_end);
  }
  check_end(id, now, found->second.back());
}

/// What is lost ends where a log ends that has nothing of the new epoch: what came after the
/// election is not lost.
void LossAudit::check_new_end(const model::PartitionId& id, const State& before,
                              const State& now) const {
  const auto found = losses_.find(id);
  if (found == losses_.end() || now.loss_end == before.loss_end ||
      now.loss_epoch != before.loss_epoch || now.loss_epoch != found->second.back().epoch)
    return;
  require(found->second.back().ends.contains(now.loss_end),
          "R1: {}: the state says that something is lost up to {}; since epoch {} began no log "
          "without records of that epoch ended there",
          id.text(), now.loss_end, now.loss_epoch);
}

/// A leader of the past that has run on says what it had before it is cut.
void LossAudit::check_end(const model::PartitionId& id, const State& now, const Loss& loss) const {
  if (now.loss_epoch != loss.epoch) return;
  for (const auto& node : nodes_) {
    const auto past = loss.past.find(node->id());
    if (past == loss.past.end() || node->id() == loss.leader.value()) continue;
    const auto& [shown, disk_losses] = past->second;
    require(disk_losses != node->disk_losses() || shown <= loss.start || now.loss_end >= shown,
            "R1: {}: [{}, {}) is lost, which {} has shown since; the state says up to {}",
            id.text(), loss.start, shown, node->name(), now.loss_end);
  }
  Offset highest;
  for (const auto& [epoch, end] : ends_.at(id)) {
    if (epoch < loss.epoch) highest = std::max(highest, end);
  }
  require(now.loss_end <= highest,
          "R1: {}: the state says that something is lost up to {}; before epoch {} no log ever "
          "went beyond {}",
          id.text(), now.loss_end, loss.epoch, highest);
}

}  // namespace mq::sim
