#include "broker/damaged.h"

#include <algorithm>
#include <iterator>

#include "broker/error_map.h"

namespace mq::broker {
namespace {

using metadata::PartitionAssignment;
using protocol::WireError;

/// A follower that is not in sync has told that it has what is wanted, or has not had the time to
/// tell anything in this leader epoch.
bool may_be_elsewhere(Worker& worker, const replication::Partition& led, model::Offset wanted) {
  const auto from = wanted == model::Offset() ? led.log_end_offset() : wanted;
  const auto now = worker.runtime().now();
  return std::ranges::any_of(led.followers(), [&](const replication::Isr::Follower& follower) {
    const bool silent = follower.confirmed_end == model::Offset();
    return silent ? now - follower.caught_up_at < worker.core().limits.isr.lag_time
                  : follower.confirmed_end > from || follower.confirmed_end == led.log_end_offset();
  });
}

}  // namespace

std::vector<model::IsrMember> complete_elsewhere(const PartitionAssignment& assignment,
                                                 model::BrokerId self) {
  std::vector<model::IsrMember> others;
  for (const auto* const members : {&assignment.isr, &assignment.elr}) {
    std::ranges::copy_if(*members, std::back_inserter(others),
                         [&](const model::IsrMember& member) { return member.broker != self; });
  }
  return others;
}

protocol::Status damaged_status(Worker& worker, const model::PartitionId& partition,
                                model::Offset wanted, std::string text) {
  const Core& core = worker.core();
  const auto image = core.image();
  const auto* const assignment = image->find_partition(partition);
  if (!assignment) return core.missing(partition);
  // The next image gives it up: another broker leads, or nobody who could say more.
  const auto* const led = worker.partitions().find(partition);
  const bool shared = assignment->replicas.size() > 1;
  if (shared && (assignment->leader != core.id || !led || led->failure()))
    return core.status(WireError::partition_offline, text + "; another replica is to lead");
  // The others cannot give it out either.
  const bool stays = shared && !led->may_be_better_elsewhere();
  const auto others = complete_elsewhere(*assignment, core.id);
  if (!others.empty() && !stays) {
    const auto other = others.front().broker;
    const auto* const broker = image->find_broker(other);
    return core.status(WireError::partition_offline,
                       broker && broker->alive
                           ? fmt::format("{}; broker {} has it and is to lead", text, other)
                           : fmt::format("{}; broker {} has it and is away", text, other));
  }
  if (shared && !stays && may_be_elsewhere(worker, *led, wanted))
    return core.status(WireError::partition_offline,
                       text + "; a follower that has it may lead soon");
  const auto topic = image->find_topic(partition.topic);
  return core.status(WireError::partition_corrupt,
                     fmt::format("{}{}; mqctl partition describe {}/{} says what can be done", text,
                                 shared ? ", and no other replica has all of it" : "", topic->name,
                                 partition.partition));
}

protocol::Status refusal_of(Worker& worker, const model::PartitionId& partition,
                            const base::Error& error) {
  const Core& core = worker.core();
  const auto name = core.partition_name(partition);
  const auto wire = to_wire(error);
  if (wire == WireError::partition_corrupt)
    return damaged_status(worker, partition, model::Offset(),
                          fmt::format("{}: its log is damaged on broker {}", name, core.id));
  return core.status(wire, fmt::format("{}: {}", name, error.message()));
}

}  // namespace mq::broker
