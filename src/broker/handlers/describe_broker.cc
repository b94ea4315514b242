#include "protocol/describe_broker.h"

#include <algorithm>

#include "broker/connection.h"
#include "broker/handlers/handlers.h"
#include "broker/hop.h"
#include "broker/membership.h"
#include "broker/partition_facts.h"
#include "broker/process_stats.h"
#include "broker/replica_keeper.h"
#include "broker/version.h"

namespace mq::broker {
namespace {

using protocol::DescribeBrokerResponse;

constexpr std::size_t kDamagedNamed = 5;
constexpr std::uint32_t kUnservedNamed = 5;
constexpr std::size_t kReplicasNamed = 5;

/// A copy less each; `text_of` says of the first why, `more` what the others are.
template <class TextOf>
void alert_some(const std::vector<model::PartitionId>& replicas, const char* check,
                const TextOf& text_of, const std::string& more, DescribeBrokerResponse& response) {
  const auto named = std::min(replicas.size(), kReplicasNamed);
  for (std::size_t i = 0; i < named; ++i)
    response.alerts.push_back({check, 3, text_of(replicas[i])});
  if (named < replicas.size())
    response.alerts.push_back(
        {check, 3, fmt::format("and {} more {}", replicas.size() - named, more)});
}

/// "orders/0 on broker 1"
std::string replica_name(const Core& core, const metadata::ClusterImage& image,
                         const model::PartitionId& id) {
  return fmt::format("{}/{} on broker {}", image.find_topic(id.topic)->name, id.partition, core.id);
}

/// Replicas here that cannot be read in places and follow others.
void describe_damaged_followers(const Core& core, const metadata::ClusterImage& image,
                                DescribeBrokerResponse& response) {
  const auto& reports = core.membership->reporter().last_reports();
  std::vector<model::PartitionId> damaged;
  for (const auto& [id, report] : reports) {
    const auto topic = image.find_topic(id.topic);
    const auto* const partition = topic ? topic->find(id.partition) : nullptr;
    if (!report.damage.empty() && partition != nullptr && partition->leader != core.id)
      damaged.push_back(id);
  }
  response.partitions_damaged += static_cast<std::uint32_t>(damaged.size());
  const auto text_of = [&](const model::PartitionId& id) {
    return fmt::format("{}: {}", replica_name(core, image, id), reports.at(id).reason.text);
  };
  alert_some(damaged, "damage", text_of,
             fmt::format("copies on broker {}: mqctl partition list", core.id), response);
}

std::string way_out(const base::Error& why, model::BrokerId broker) {
  if (why == make_error_code(storage::StorageErrc::storage_full))
    return fmt::format("make room on its disk: mqctl broker disks {}", broker);
  return fmt::format("mqctl broker disks {} and the log of broker {} say more", broker, broker);
}

/// Replicas here whose log cannot be made, or made anew in place of a damaged one.
void describe_failing(const Core& core, const metadata::ClusterImage& image,
                      DescribeBrokerResponse& response) {
  if (core.replica_keeper == nullptr) return;
  const auto reasons = core.replica_keeper->failing();
  std::vector<model::PartitionId> failing;
  for (const auto& [id, why] : reasons) {
    if (image.find_topic(id.topic)) failing.push_back(id);
  }
  const auto text_of = [&](const model::PartitionId& id) {
    const auto& why = reasons.at(id);
    // A damaged one stays until another one is in its place.
    const bool anew = core.disks->find(id) != nullptr;
    return fmt::format("{}: its log cannot be made{}: {}; this is tried again and again. {}",
                       replica_name(core, image, id), anew ? " anew" : "", why.message(),
                       way_out(why, core.id));
  };
  alert_some(failing, "replication", text_of,
             fmt::format("logs on broker {} that cannot be made", core.id), response);
}

/// What is led here cannot be read in places; the rest is served.
void describe_damaged(const Core& core, const std::string& topic,
                      const metadata::PartitionAssignment& partition, const std::string& place,
                      DescribeBrokerResponse& response) {
  if (response.partitions_damaged++ >= kDamagedNamed) return;
  response.warnings.push_back(
      fmt::format("partition {}-{} is damaged: {}", topic, partition.id.partition, place));
  response.alerts.push_back(
      {"damage", 2,
       fmt::format(
           "{0}/{1} on broker {2}, which leads it: {3}; the rest is served. mqctl partition "
           "describe {0}/{1} says what can be done",
           topic, partition.id.partition, core.id, place)});
}

/// On the home runtime.
asio::awaitable<void> describe_home(Core& core, DescribeBrokerResponse& response) {
  const Membership& membership = *core.membership;
  response.metadata_trouble = membership.trouble();
  response.broker_epoch = membership.epoch().value();
  response.lease_lost = !membership.has_lease(core.home->now());
  if (membership.leader()) response.controller = membership.leader()->broker.value();
  for (const auto& line : membership.warnings()) response.warnings.push_back(line);
  if (const auto& differ = membership.differing_defaults(); !differ.empty())
    response.warnings.push_back(differ);
  describe_damaged_followers(core, *core.image(), response);
  describe_failing(core, *core.image(), response);
  if (const auto why = membership.image_trouble(); !why.empty())
    response.alerts.push_back({"images", 3, fmt::format("broker {}: {}", core.id, why)});
  response.clock_ahead_ms = membership.clock_ahead_ms();
  if (auto why = membership.clock_trouble(); !why.empty())
    response.alerts.push_back({"clocks", 3, std::move(why)});
  if (!response.metadata_trouble.empty()) {
    response.warnings.push_back(
        response.metadata_trouble +
        "; producing and consuming go on, topics cannot be changed meanwhile");
  }
  for (auto& disk : core.disks->status()) {
    protocol::DiskDescription out;
    out.path = std::move(disk.path);
    out.state = std::move(disk.state);
    out.bytes_used = disk.used_bytes;
    out.bytes_free = disk.free_bytes;
    out.bytes_total = out.bytes_used + out.bytes_free;
    out.partitions = disk.partitions;
    out.disk = disk.disk;
    out.reason = std::move(disk.reason);
    out.write_rate = disk.write_rate;
    out.scrubbed_bytes = disk.scrub.bytes;
    out.scrub_damaged_segments = disk.scrub.damaged_segments;
    out.intact_since_disk = disk.intact.disk;
    out.intact_since_memory = disk.intact.memory;
    out.aside_bytes = disk.aside.bytes;
    out.aside_logs = disk.aside.logs;
    response.disks.push_back(std::move(out));
  }
  co_return;
}

/// What the controller found damaged concerns all brokers, and any of them may be asked. A topic
/// without its node is not served, a child that is no topic's only waits to be removed.
void describe_damage(const metadata::ClusterImage& image, DescribeBrokerResponse& response) {
  for (const auto& node : image.damage())
    response.alerts.push_back({"damage", node.topic.empty() ? 4U : 2U, node.text});
}

constexpr std::size_t kLossesNamed = 5;

std::string lost_range(const metadata::PartitionAssignment& partition) {
  if (partition.loss_start.value() < 0) return {};
  if (partition.loss_end.value() < 0)
    return fmt::format("from offset {} on, ", partition.loss_start);
  return fmt::format("offsets {} to {}, ", partition.loss_start, partition.loss_end.value() - 1);
}

/// Any broker says it of all partitions, so that it is seen while whoever lost them is away.
void describe_losses(const metadata::ClusterImage& image, DescribeBrokerResponse& response) {
  std::vector<std::string> names;
  std::size_t more = 0;
  for (const auto& [name, topic] : image.topics()) {
    for (const auto& partition : topic->partitions) {
      if (partition.loss_epoch == model::LeaderEpoch()) continue;
      if (names.size() < kLossesNamed)
        names.push_back(fmt::format("{}/{} ({}leader epoch {})", name, partition.id.partition,
                                    lost_range(partition), partition.loss_epoch));
      else
        ++more;
    }
  }
  if (names.empty()) return;
  response.alerts.push_back(
      {"records", 3,
       fmt::format("records may be lost: {}{}; whoever leads since may lack some: the only replica "
                   "that could lead could not say that nothing is missing, as after a disk was "
                   "emptied, unclean_election let it lead, or an operator accepted the loss. mqctl "
                   "partition acknowledge-loss ends this alarm",
                   fmt::join(names, ", "), more == 0 ? "" : fmt::format(" and {} more", more))});
}

void describe_process(Core& core, base::Runtime& runtime, DescribeBrokerResponse& response) {
  const auto stats = read_process_stats(core.files);
  response.process_id = stats.process_id;
  response.resident_bytes = stats.resident_bytes;
  response.cpu_user_ms = stats.cpu_user_ms;
  response.cpu_system_ms = stats.cpu_system_ms;
  response.uptime_ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(runtime.now() - core.started_at)
          .count();
}

void describe_partitions(const Core& core, const metadata::ClusterImage& image,
                         const std::map<model::PartitionId, PartitionFacts>& facts,
                         DescribeBrokerResponse& response) {
  response.topics = static_cast<std::uint32_t>(image.topics().size());
  if (const auto* const self = image.find_broker(core.id)) response.rack = self->rack;
  for (const auto& [name, topic] : image.topics()) {
    for (const auto& assignment : topic->partitions) {
      if (std::ranges::find(assignment.replicas, core.id) == assignment.replicas.end()) continue;
      ++response.partitions;
      if (assignment.leader != core.id) continue;
      ++response.partitions_led;
      const auto found = facts.find(assignment.id);
      if (found == facts.end()) {
        ++response.partitions_not_serving;
      } else if (!found->second.failure.empty()) {
        if (response.partitions_not_serving++ < kUnservedNamed)
          response.alerts.push_back(
              {"serving", 2,
               fmt::format("{}/{} is not served by broker {}: {}", name, assignment.id.partition,
                           core.id, found->second.failure)});
      } else if (!found->second.damage.empty()) {
        describe_damaged(core, name, assignment, found->second.damage, response);
      }
    }
  }
}

asio::awaitable<void> describe(Request request) {
  Core& core = request.core();
  DescribeBrokerResponse response;
  response.broker_id = core.id.value();
  response.version = kVersion;
  response.cluster_id = core.cluster_id;
  response.metadata_kind = core.metadata_kind;
  response.workers = static_cast<std::uint32_t>(core.workers.size());
  for (const auto& worker : core.workers)
    response.connections += static_cast<std::uint32_t>(worker->open_connections());
  response.warnings = core.warnings;
  response.partitions_recovering = core.partitions_recovering;
  response.recovery_bytes_read = core.recovery_bytes_read;
  describe_process(core, request.worker().runtime(), response);
  co_await run_on(*core.home, describe_home(core, response));
  const auto facts = co_await gather_partition_facts(core);
  describe_partitions(core, *core.image(), facts, response);
  describe_damage(*core.image(), response);
  describe_losses(*core.image(), response);
  response.counters = core.counters.snapshot();
  response.envelope = core.envelope();
  request.answer(protocol::encode(response));
}

}  // namespace

void handle_describe_broker(Request request) {
  if (!protocol::decode_describe_broker_request(request.header()))
    return request.fail(protocol::WireError::malformed_request, "DescribeBroker does not parse");
  request.release_memory();
  auto& worker = request.worker();
  worker.tasks().spawn("describe broker", describe(std::move(request)));
}

}  // namespace mq::broker
