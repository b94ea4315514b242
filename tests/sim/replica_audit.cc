#include "sim/replica_audit.h"

#include <algorithm>

#include "broker/worker.h"
#include "metadata/znode_layout.h"
#include "sim/violation.h"

namespace mq::sim {
namespace {

namespace layout = metadata::layout;

using model::IsrMember;
using model::Offset;
using Members = std::vector<IsrMember>;

std::string text_of(const Members& members) {
  std::string all;
  for (const auto& member : members)
    all += fmt::format(" {}@{}", member.broker.value(), member.epoch.value());
  return all;
}

const IsrMember* find(const Members& members, model::BrokerId broker) {
  const auto found = std::ranges::find(members, broker, &IsrMember::broker);
  return found == members.end() ? nullptr : &*found;
}

bool has_one_holder(const metadata::PartitionStateValue& state) {
  return state.isr.size() + state.elr.size() <= 1;
}

/// No world lasts as long.
constexpr std::int64_t kAppendedWithinMs = 1'000'000;

void mix(std::uint64_t& hash, std::int64_t value) {
  hash = (hash ^ static_cast<std::uint64_t>(value)) * 0x9e3779b97f4a7c15ull;
  hash ^= hash >> 29;
}

/// `visit(log)` for every copy of the node that has a role.
template <class Visit>
void each_log(const ClusterNode& node, Visit visit) {
  for (const auto& worker : node.process()->core().workers) {
    for (const auto& [id, partition] : worker->partitions().all()) {
      if (partition->replicated() && !partition->failure()) visit(partition->log());
    }
    for (const auto& [id, partition] : worker->partitions().followed()) {
      if (!partition->failure()) visit(partition->log());
    }
  }
}

}  // namespace

ReplicaAudit::ReplicaAudit(BrokerMachine& world, const Nodes& nodes)
    : world_(world), nodes_(nodes), signatures_(nodes.size()) {}

const ClusterNode* ReplicaAudit::node(model::BrokerId id) const {
  const auto found =
      std::ranges::find(nodes_, id.value(), [](const auto& one) { return one->id(); });
  return found == nodes_.end() ? nullptr : found->get();
}

/// What the store says of it holds for the broker as it is registered now.
bool ReplicaAudit::registered(const IsrMember& member) const {
  const auto epoch = world_.metadata->nodes.find(layout::broker_epoch(member.broker));
  return epoch != world_.metadata->nodes.end() && epoch->second.version == member.epoch.value();
}

/// Null when it cannot be looked at now: the process is dead, or starts.
storage::PartitionLog* ReplicaAudit::log_of(const IsrMember& member,
                                            const model::PartitionId& id) const {
  const auto* const where = node(member.broker);
  if (!where || !where->serving() || !registered(member)) return nullptr;
  auto* const log = where->broker()->core().disks->find(id);
  return log && !log->failure() ? log : nullptr;
}

// What is written

void ReplicaAudit::wrote_state(const model::PartitionId& id, const std::optional<State>& value) {
  ++writes_;
  if (!value) {
    states_.erase(id);
    return;
  }
  world_.simulator.trace(fmt::format("the store: {} led by {} in epoch {}; ISR{}; ELR{}; once{}",
                                     id.text(), value->leader, value->leader_epoch,
                                     text_of(value->isr), text_of(value->elr),
                                     text_of(value->last_known_elr)));
  const auto before = states_.find(id);
  const auto earlier = before == states_.end() ? std::nullopt : std::optional(before->second);
  if (!earlier || has_one_holder(*earlier)) had_one_holder_until_[id] = world_.runtime.now();
  states_[id] = *value;
  check_members(id, *value);
  if (earlier) check_change(id, *earlier, *value);
  check_candidates(id, "as the store has it");
}

bool ReplicaAudit::had_one_holder(const model::PartitionId& id, base::TimePoint since) const {
  const auto state = states_.find(id);
  return state == states_.end() || has_one_holder(state->second) ||
         had_one_holder_until_.at(id) >= since;
}

/// R13
void ReplicaAudit::check_members(const model::PartitionId& id, const State& value) const {
  for (const auto& member : value.isr) {
    require(std::ranges::count(value.isr, member.broker, &IsrMember::broker) == 1,
            "R13: {}: broker {} is twice in the ISR", id.text(), member.broker);
    require(!find(value.elr, member.broker), "R13: {}: broker {} is in the ISR and the ELR",
            id.text(), member.broker);
  }
  require(value.leader == model::BrokerId() || find(value.isr, value.leader),
          "R13: {}: the leader {} is not in the ISR", id.text(), value.leader);
}

void ReplicaAudit::check_change(const model::PartitionId& id, const State& before,
                                const State& now) {
  if (now.isr.size() < before.isr.size()) ++shrinks_;
  if (now.leader != before.leader) ++elections_;
  const auto shown = shown_.find(id);
  if (shown != shown_.end() && shown->second > Offset(0)) {
    const bool elected = now.leader != before.leader && now.leader != model::BrokerId();
    const bool outside = elected && !find(before.isr, now.leader) && !find(before.elr, now.leader);
    const bool loss = now.loss_epoch != before.loss_epoch;
    const bool allowed = (outside || loss) && losses_.allowed(id);
    require(!outside || (allowed && loss),
            "R11: {}: broker {} becomes leader and was in neither ISR{} nor ELR{}", id.text(),
            now.leader, text_of(before.isr), text_of(before.elr));
    require(!loss || allowed, "R1: {}: a loss is reported in epoch {}, and somebody has all of it",
            id.text(), now.loss_epoch);
    const auto* const leader = find(now.isr, now.leader);
    const auto* const log = leader ? log_of(*leader, id) : nullptr;
    const auto whole = log ? std::optional(log->high_watermark_hint()) : std::nullopt;
    shown->second = losses_.wrote_state(id, before, now, shown->second, whole);
    if (loss) {  // also where nothing changes any more
      for (const auto& node : nodes_)
        if (node->process()) see_logs(*node);
    }
  }
  // Without a new leader only the present one lets somebody in.
  if (now.leader_epoch != before.leader_epoch) return;
  for (const auto& member : now.isr) {
    if (!find(before.isr, member.broker)) check_added(id, now, member);
  }
}

/// R8
void ReplicaAudit::check_added(const model::PartitionId& id, const State& now,
                               const IsrMember& added) const {
  require(registered(added), "R8: {}: broker {} gets into the ISR under epoch {} and has another",
          id.text(), added.broker, added.epoch);
  const auto* const log = log_of(added, id);
  const auto start = epoch_starts_.find({id, now.leader_epoch.value()});
  if (!log || added.broker == now.leader || start == epoch_starts_.end()) return;
  require(log->confirmed_end() >= start->second,
          "R8: {}: broker {} gets into the ISR with what it has up to {}; epoch {} began at {}",
          id.text(), added.broker, log->confirmed_end(), now.leader_epoch, start->second);
}

/// R1, R4, R9: whoever may be elected has all that was shown.
void ReplicaAudit::check_candidates(const model::PartitionId& id, const char* when) const {
  const auto shown = shown_.find(id);
  const auto state = states_.find(id);
  if (shown == shown_.end() || state == states_.end()) return;
  for (const auto* const members : {&state->second.isr, &state->second.elr}) {
    for (const auto& member : *members) {
      const auto* const log = log_of(member, id);
      if (!log) continue;
      require(log->confirmed_end() >= shown->second,
              "R1: {} {}: candidate {} has confirmed up to {} (its log ends at {}), and {} was "
              "shown",
              id.text(), when, member.broker, log->confirmed_end(), log->log_end_offset(),
              shown->second);
    }
  }
}

// What brokers do

void ReplicaAudit::observe() {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const auto now = signature(*nodes_[i]);
    if (std::exchange(signatures_[i], now) != now && nodes_[i]->process()) look_at(*nodes_[i]);
  }
}

/// Another one whenever something has moved that look_at() looks at.
std::uint64_t ReplicaAudit::signature(const ClusterNode& node) const {
  if (!node.process()) return 0;
  std::uint64_t hash = 1;
  mix(hash, static_cast<std::int64_t>(node.lives() * 2 + (node.serving() ? 1 : 0)));
  mix(hash, static_cast<std::int64_t>(writes_));
  for (const auto& worker : node.process()->core().workers) {
    for (const auto& [id, partition] : worker->partitions().all()) {
      if (!partition->replicated()) continue;
      mix(hash, partition->high_watermark().value());
      mix(hash, partition->leader_epoch().value());
    }
  }
  each_log(node, [&](const auto& log) { mix(hash, log.log_end_offset().value()); });
  return hash;
}

void ReplicaAudit::look_at(const ClusterNode& node) {
  for (const auto& worker : node.process()->core().workers) {
    for (const auto& [id, partition] : worker->partitions().all()) {
      if (partition->replicated() && !partition->failure()) look_at_leader(node, *partition);
    }
  }
  see_logs(node);
  if (node.serving()) each_log(node, [&](const auto& log) { check_end(node, log); });
}

void ReplicaAudit::see_logs(const ClusterNode& node) {
  each_log(node, [&](const auto& log) {
    losses_.saw_log(log.id(), log.leader_epoch(), log.log_end_offset());
  });
}

void ReplicaAudit::look_at_leader(const ClusterNode& node,
                                  const replication::Partition& partition) {
  const auto& id = partition.id();
  const auto state = states_.find(id);
  if (state == states_.end()) return;  // deleted
  const auto high_watermark = partition.high_watermark();
  const auto epoch = partition.leader_epoch();
  auto& seen = seen_[{node.id(), id}];
  const bool known = seen.life == node.lives() && seen.leader_epoch == epoch.value();
  const bool rises = known && high_watermark > seen.high_watermark;
  require(!known || high_watermark >= seen.high_watermark, "PAR-1: {}: {} fell from {} to {}",
          id.text(), node.name(), seen.high_watermark, high_watermark);
  if (!known) epoch_starts_.try_emplace({id, epoch.value()}, partition.log_end_offset());
  seen = {node.lives(), epoch.value(), high_watermark};
  if (rises) check_rise(node, partition);
  if (losses_.is_past(id, epoch)) return losses_.saw_past_leader(node, id, high_watermark);
  auto& shown = shown_.try_emplace(id, high_watermark).first->second;
  if (high_watermark > shown) {
    shown = high_watermark;
    check_candidates(id, "when the high watermark rises");
  }
  const bool in_force =
      state->second.leader.value() == node.id() && state->second.leader_epoch == epoch;
  const auto latest = partition.latest();
  require(!in_force || !latest || *latest >= shown, "R5: {}: {} tells the end {}, {} was shown",
          id.text(), node.name(), latest ? *latest : Offset(), shown);
}

/// R4: by what members of a large enough ISR said in this very epoch.
void ReplicaAudit::check_rise(const ClusterNode& leader,
                              const replication::Partition& partition) const {
  const auto& state = partition.isr_state();
  require(state.isr.size() >= state.min_isr, "R4: {}: {} shows more with an ISR of {}",
          partition.id().text(), leader.name(), state.isr.size());
  for (const auto& member : state.isr) {
    const auto* const where = node(member.broker);
    if (!where || where == &leader || !where->serving() || !registered(member)) continue;
    const auto& id = partition.id();
    const auto* const follower =
        where->broker()->core().worker_of(id).partitions().find_followed(id);
    require(!follower || follower->following().leader_epoch >= partition.leader_epoch(),
            "R4: {}: {} shows more in epoch {}, {} has not heard of it", id.text(), leader.name(),
            partition.leader_epoch(), where->name());
  }
}

/// A candidate whose log becomes shorter.
void ReplicaAudit::check_end(const ClusterNode& node, const storage::PartitionLog& log) const {
  const auto shown = shown_.find(log.id());
  if (shown == shown_.end() || log.log_end_offset() >= shown->second) return;
  check_candidates(log.id(), fmt::format("when the log of {} is looked at", node.name()).c_str());
}

std::optional<Offset> ReplicaAudit::shown_end(const model::PartitionId& id) const {
  const auto shown = shown_.find(id);
  if (shown == shown_.end()) return std::nullopt;
  return shown->second;
}

replication::Partition* ReplicaAudit::leader_of(const model::PartitionId& id) const {
  for (const auto& node : nodes_) {
    if (!node->serving()) continue;
    auto& core = node->broker()->core();
    auto* const partition = core.worker_of(id).partitions().find(id);
    const auto image = node->image();
    const auto* const assignment = image ? image->find_partition(id) : nullptr;
    if (partition && !partition->failure() && assignment &&
        assignment->leader.value() == node->id() &&
        assignment->leader_epoch == partition->leader_epoch())
      return partition;
  }
  return nullptr;
}

const metadata::PartitionStateValue* ReplicaAudit::state_of(const model::PartitionId& id) const {
  const auto state = states_.find(id);
  return state == states_.end() ? nullptr : &state->second;
}

std::vector<model::PartitionId> ReplicaAudit::partitions() const {
  std::vector<model::PartitionId> all;
  for (const auto& [id, state] : states_) all.push_back(id);
  return all;
}

bool ReplicaAudit::others_have_all(const ClusterNode& loser) const {
  return std::ranges::all_of(shown_, [&](const auto& entry) {
    const auto state = states_.find(entry.first);
    if (state == states_.end()) return true;
    return std::ranges::any_of(state->second.isr, [&](const auto& member) {
      return member.broker.value() != loser.id() && log_of(member, entry.first) != nullptr;
    });
  });
}

bool ReplicaAudit::has_all(const ClusterNode& node) const {
  return node.serving() && std::ranges::all_of(shown_, [&](const auto& entry) {
           const auto state = states_.find(entry.first);
           if (state == states_.end()) return true;
           const auto* const member = find(state->second.isr, model::BrokerId(node.id()));
           return member && log_of(*member, entry.first) != nullptr;
         });
}

// Once all is calm

std::string ReplicaAudit::not_in_sync() const {
  const auto image = nodes_.front()->image();
  if (!image) return "no image";
  for (const auto& [name, topic] : image->topics()) {
    for (const auto& assignment : topic->partitions) {
      if (auto why = not_in_sync(assignment); !why.empty())
        return fmt::format("{}-{}: {}", name, assignment.id.partition, why);
    }
  }
  return {};
}

std::string ReplicaAudit::not_in_sync(const metadata::PartitionAssignment& assignment) const {
  const auto* const leader = leader_of(assignment.id);
  if (!leader) return "nobody leads";
  if (assignment.isr.size() != assignment.replicas.size()) {
    auto text = fmt::format("in sync are{}", text_of(assignment.isr));
    for (const auto& follower : leader->followers())
      text += fmt::format("; broker {} has confirmed up to {} of {}", follower.broker,
                          follower.confirmed_end, leader->log_end_offset());
    return text;
  }
  for (const auto& member : assignment.isr) {
    const auto* const log = log_of(member, assignment.id);
    if (!log) return fmt::format("broker {} has no log", member.broker);
    if (log->log_end_offset() != leader->log_end_offset())
      return fmt::format("the log of broker {} ends at {}, the leader's at {}", member.broker,
                         log->log_end_offset(), leader->log_end_offset());
  }
  if (leader->high_watermark() == leader->log_end_offset()) return {};
  return fmt::format("{} of {} are confirmed", leader->high_watermark(), leader->log_end_offset());
}

void ReplicaAudit::check_losses_reported() const {
  for (const auto& [id, state] : states_) losses_.check_reported(id, state);
}

/// The bytes, walked batch by batch.
asio::awaitable<std::string> ReplicaAudit::content(storage::PartitionLog* log, Offset from,
                                                   Offset to) const {
  std::string bytes;
  while (from < to) {
    const auto piece = co_await log->read_from_disk(from, to, std::size_t{1} << 20);
    require(piece.has_value(), "L2: {} cannot be read at {}: {}", log->id().text(), from,
            piece ? "" : piece.error().message());
    for (const auto& batches : piece->batches) {
      for (auto rest = batches.bytes; !rest.empty();) {
        const auto batch = model::RecordBatchView::parse_first(rest);
        require(batch.has_value(), "L3: {} has a bad batch at {}", log->id().text(), from);
        const auto now = world_.runtime.wall_clock_ms();
        require(std::abs(batch->append_time_ms() - now) < kAppendedWithinMs,
                "LOG-14: {} has a batch at {} that was appended at {}, and it is {}",
                log->id().text(), from, batch->append_time_ms(), now);
        require(batch->base_offset() == from, "L1: {} has {} behind {}", log->id().text(),
                batch->base_offset(), from);
        from = batch->end_offset();
        bytes.append(base::as_text(batch->bytes()));
        rest = rest.subspan(batch->bytes().size());
      }
    }
    require(piece->end_offset == from, "L1: {} has nothing at {}", log->id().text(), from);
  }
  co_return bytes;
}

asio::awaitable<void> ReplicaAudit::compare() {
  const auto image = nodes_.front()->image();
  for (const auto& [name, topic] : image->topics()) {
    for (const auto& assignment : topic->partitions) {
      const auto* const leader = leader_of(assignment.id);
      require(leader != nullptr, "nobody leads {}-{}", name, assignment.id.partition);
      std::vector<storage::PartitionLog*> logs;
      auto from = leader->log_start_offset();
      require(from == Offset(0), "{}-{} begins at {}: nothing in it is old", name,
              assignment.id.partition, from);
      for (const auto& member : assignment.isr) {
        logs.push_back(log_of(member, assignment.id));
        require(logs.back() != nullptr, "{}-{}: no log at {}", name, assignment.id.partition,
                member.broker);
        from = std::max(from, logs.back()->log_start_offset());
      }
      const auto to = leader->high_watermark();
      const auto first = co_await content(logs.front(), from, to);
      for (auto* const log : logs) {
        const auto other = co_await content(log, from, to);
        require(other == first, "R6: {}-{}: two replicas differ in [{}, {})", name,
                assignment.id.partition, from, to);
      }
    }
  }
}

}  // namespace mq::sim
