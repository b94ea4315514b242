#include "sim/replica_audit.h"

#include <algorithm>

#include "broker/worker.h"
#include "metadata/znode_layout.h"
#include "sim/violation.h"

namespace mq::sim {
namespace {

namespace layout = metadata::layout;

constexpr std::size_t kReadBytes = std::size_t{1} << 20;

}  // namespace

const ClusterNode* ReplicaAudit::node(model::BrokerId id) const {
  const auto found =
      std::ranges::find(nodes_, id.value(), [](const auto& one) { return one->id(); });
  return found == nodes_.end() ? nullptr : found->get();
}

/// What the store says of it holds for the broker as it is registered now.
bool ReplicaAudit::registered(const model::IsrMember& member) const {
  const auto epoch = world_.metadata->nodes.find(layout::broker_epoch(member.broker));
  return epoch != world_.metadata->nodes.end() && epoch->second.version == member.epoch.value();
}

/// Null when it cannot be looked at now: the process is dead, or starts.
storage::PartitionLog* ReplicaAudit::log_of(const model::IsrMember& member,
                                            const model::PartitionId& id) const {
  const auto* const where = node(member.broker);
  if (!where || !where->serving() || !registered(member)) return nullptr;
  return where->broker()->core().disks->find(id);
}

void ReplicaAudit::wrote_state(const model::PartitionId& id,
                               const metadata::PartitionStateValue& value) {
  const auto text = [](const std::vector<model::IsrMember>& members) {
    std::string all;
    for (const auto& member : members)
      all += fmt::format(" {}@{}", member.broker.value(), member.epoch.value());
    return all;
  };
  world_.simulator.trace(fmt::format("the store: {} led by {} in epoch {}; ISR{}; ELR{}; once{}",
                                     id.text(), value.leader, value.leader_epoch, text(value.isr),
                                     text(value.elr), text(value.last_known_elr)));
  for (const auto& member : value.isr) {
    const auto same = [&](const auto& other) { return other.broker == member.broker; };
    require(std::ranges::count_if(value.isr, same) == 1, "R13: {}: broker {} is twice in the ISR",
            id.text(), member.broker);
    require(std::ranges::none_of(value.elr, same), "R13: {}: broker {} is in the ISR and the ELR",
            id.text(), member.broker);
  }
  if (value.leader == model::BrokerId()) return;
  const auto leads = [&](const auto& member) { return member.broker == value.leader; };
  const auto leader = std::ranges::find_if(value.isr, leads);
  require(leader != value.isr.end(), "R13: {}: the leader {} is not in the ISR", id.text(),
          value.leader);
  auto& epoch = leader_epochs_[id];
  if (value.leader_epoch.value() <= epoch) return;
  epoch = value.leader_epoch.value();
  const auto shown = shown_.find(id);
  const auto* const log = log_of(*leader, id);
  if (shown == shown_.end() || log == nullptr || log->failure()) return;
  require(log->log_end_offset() >= shown->second,
          "R1: {}: broker {} becomes leader in epoch {}, its log ends at {}, and {} was shown",
          id.text(), value.leader, value.leader_epoch, log->log_end_offset(), shown->second);
}

void ReplicaAudit::observe() {
  for (const auto& node : nodes_) {
    if (!node->process()) continue;
    for (const auto& worker : node->process()->core().workers) {
      for (const auto& [id, partition] : worker->partitions().all()) {
        if (partition->replicated() && !partition->failure()) look_at(*node, *partition);
      }
    }
  }
}

void ReplicaAudit::look_at(const ClusterNode& leader, const replication::Partition& partition) {
  const auto& id = partition.id();
  const auto stored = world_.metadata->nodes.find(layout::partition_state(id));
  if (stored == world_.metadata->nodes.end()) return;  // deleted
  const auto high_watermark = partition.high_watermark();
  auto& seen = seen_[{leader.id(), id}];
  const Seen now{high_watermark, stored->second.version, partition.leader_epoch().value()};
  if (seen.high_watermark == now.high_watermark && seen.version == now.version &&
      seen.leader_epoch == now.leader_epoch)
    return;
  seen = now;
  auto& shown = shown_.try_emplace(id, high_watermark).first->second;
  shown = std::max(shown, high_watermark);
  const auto value = metadata::decode_partition_state(stored->second.value);
  require(value.has_value(), "the state of {} is damaged", id.text());
  const bool in_force =
      value->leader.value() == leader.id() && value->leader_epoch == partition.leader_epoch();
  if (!in_force) return;
  for (const auto* const set : {&value->isr, &value->elr}) {
    for (const auto& member : *set) {
      const auto* const log = log_of(member, id);
      if (log == nullptr || log->failure()) continue;
      require(log->confirmed_end() >= high_watermark,
              "R4: {}: {} shows up to {}, and candidate {} has confirmed up to {}", id.text(),
              leader.name(), high_watermark, member.broker, log->confirmed_end());
    }
  }
}

std::optional<model::Offset> ReplicaAudit::shown_end(const model::PartitionId& id) const {
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

bool ReplicaAudit::all_in_sync() const {
  const auto image = nodes_.front()->image();
  if (!image) return false;
  for (const auto& [name, topic] : image->topics()) {
    for (const auto& assignment : topic->partitions) {
      const auto* const leader = leader_of(assignment.id);
      if (!leader || assignment.isr.size() != assignment.replicas.size()) return false;
      for (const auto& member : assignment.isr) {
        const auto* const log = log_of(member, assignment.id);
        if (!log || log->log_end_offset() != leader->log_end_offset() ||
            leader->high_watermark() != leader->log_end_offset())
          return false;
      }
    }
  }
  return true;
}

asio::awaitable<std::string> ReplicaAudit::content(storage::PartitionLog* log, model::Offset from,
                                                   model::Offset to) {
  std::string bytes;
  while (from < to) {
    const auto piece = co_await log->read_from_disk(from, to, kReadBytes);
    require(piece.has_value(), "L2: {} cannot be read at {}: {}", log->id().text(), from,
            piece ? "" : piece.error().message());
    for (const auto& batches : piece->batches) bytes.append(base::as_text(batches.bytes));
    require(piece->end_offset > from, "L1: {} has nothing at {}", log->id().text(), from);
    from = piece->end_offset;
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
