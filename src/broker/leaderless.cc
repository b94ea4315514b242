#include "broker/leaderless.h"

#include <fmt/format.h>

#include <algorithm>

#include "broker/hop.h"
#include "broker/membership.h"
#include "broker/replica_keeper.h"

namespace mq::broker {
namespace {

using metadata::PartitionAssignment;
using protocol::ReplicaReport;

/// Without a controller people are shown what there is all the same.
constexpr base::Duration kTellDamageFor = std::chrono::seconds(2);

asio::awaitable<void> gather(Core& core, std::vector<metadata::TopicPtr> topics,
                             std::vector<model::PartitionId> found, OwnReports& reports) {
  const auto& reporter = core.membership->reporter();
  const auto is_told = [&](const model::PartitionId& id) {
    const auto* const report = reporter.last_report(id);
    return report != nullptr &&
           (report->state == protocol::ReplicaState::failed || !report->damage.empty());
  };
  const bool all_told =
      found.empty() || (std::ranges::all_of(found, is_told) && reporter.left() == 0);
  if (!all_told && core.replica_keeper != nullptr)
    co_await core.replica_keeper->damage_told(core.home->now() + kTellDamageFor);
  for (const auto& topic : topics) {
    for (const auto& partition : topic->partitions) {
      const auto* const report = reporter.last_report(partition.id);
      if (report == nullptr) continue;
      if (partition.leader == model::BrokerId() || !report->damage.empty())
        reports.emplace(partition.id, *report);
    }
  }
  co_return;
}

/// Under which registration it is known to have everything; null: it is not.
const model::IsrMember* complete_as(const PartitionAssignment& assignment, model::BrokerId broker) {
  for (const auto* list : {&assignment.isr, &assignment.elr}) {
    const auto found = std::ranges::find(*list, broker, &model::IsrMember::broker);
    if (found != list->end()) return &*found;
  }
  return nullptr;
}

/// Whose partition it is stands there already.
std::string failure_of(const Core& core, const ReplicaReport& own) {
  const auto prefix = core.partition_name(own.partition) + ": ";
  const auto& text = own.reason.text;
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

std::string own_note(const Core& core, const ReplicaReport* own, bool complete, bool somebody_is) {
  if (own == nullptr)
    return core.partitions_recovering > 0 ? "is being recovered after an unclean stop"
                                          : "is still looking at its log";
  if (own->state == protocol::ReplicaState::failed)
    return fmt::format("cannot use its log: {}", failure_of(core, *own));
  const auto end = fmt::format("its log ends at offset {} of leader epoch {}", own->log_end_offset,
                               own->last_leader_epoch);
  if (!own->damage.empty()) return "is damaged: " + failure_of(core, *own);
  if (complete || !somebody_is) return "may have lost its newest records: " + end;
  return "was not in sync: " + end;
}

std::string note_of(const Core& core, const metadata::ClusterImage& image,
                    const PartitionAssignment& assignment, model::BrokerId broker,
                    const ReplicaReport* own) {
  const auto* const member = complete_as(assignment, broker);
  const bool somebody_is = !assignment.isr.empty() || !assignment.elr.empty();
  const auto* const info = image.find_broker(broker);
  if (info == nullptr || !info->alive)
    return member || !somebody_is ? "is away" : "is away, and was not in sync";
  if (member && member->epoch == info->epoch) return "is about to lead it";
  if (broker == core.id && (own || core.partitions_recovering > 0))
    return own_note(core, own, member != nullptr, somebody_is);
  if (member || !somebody_is) return "is back, and has not said what it has";
  return "was not in sync";
}

}  // namespace

asio::awaitable<OwnReports> gather_own_reports(Core& core, std::vector<metadata::TopicPtr> topics,
                                               std::vector<model::PartitionId> found) {
  OwnReports reports;
  co_await run_on(*core.home, gather(core, std::move(topics), std::move(found), reports));
  co_return reports;
}

std::vector<protocol::ReplicaNote> replica_notes(const Core& core,
                                                 const metadata::ClusterImage& image,
                                                 const PartitionAssignment& assignment,
                                                 const ReplicaReport* own) {
  std::vector<protocol::ReplicaNote> notes;
  for (const auto broker : assignment.replicas)
    notes.push_back({broker.value(), note_of(core, image, assignment, broker, own)});
  return notes;
}

std::string damage_note(const Core& core, const ReplicaReport* own) {
  if (own == nullptr || own->damage.empty()) return {};
  return "is damaged: " + failure_of(core, *own);
}

std::string why_leaderless(const Core& core, const metadata::ClusterImage& image,
                           const PartitionAssignment& assignment) {
  std::string text;
  for (const auto& note : replica_notes(core, image, assignment, nullptr))
    text += fmt::format("{}broker {} {}", text.empty() ? "" : "; ", note.broker, note.text);
  return text;
}

}  // namespace mq::broker
