#include "broker/core.h"

#include <algorithm>

#include "broker/leaderless.h"
#include "broker/membership.h"
#include "broker/worker.h"
#include "protocol/frame.h"

namespace mq::broker {

using protocol::WireError;

HotCounters::HotCounters(base::Counters& counters)
    : connections_open(counters.get("connections_open")),
      connections_total(counters.get("connections_total")),
      connections_refused(counters.get("connections_refused_total")),
      connections_moved(counters.get("connections_moved_total")),
      connections_timed_out(counters.get("connections_timed_out_total")),
      foreign_protocols(counters.get("foreign_protocols_total")),
      frames_refused(counters.get("frames_refused_total")),
      requests_total(counters.get("requests_total")),
      requests_refused(counters.get("requests_refused_total")),
      produce_batches(counters.get("produce_batches_total")),
      produce_bytes(counters.get("produce_bytes_total")),
      fetch_answers(counters.get("fetch_answers_total")),
      fetch_bytes(counters.get("fetch_bytes_total")),
      fetch_disk_reads(counters.get("fetch_disk_reads_total")),
      replica_answers(counters.get("replica_fetch_answers_total")),
      replica_bytes(counters.get("replica_fetch_bytes_total")) {}

Core::Core(base::Counters& all_counters, base::FileSystem& file_system)
    : counters(all_counters), hot(all_counters), files(file_system) {}
Core::~Core() = default;

bool Core::has_lease(base::TimePoint now) const {
  return membership->has_lease(now) && epoch_in_force == broker_epoch;
}

metadata::ImagePtr Core::image() const { return membership->view().image(); }

bool Core::answers_for(const metadata::PartitionAssignment& assignment) const {
  const bool ours = std::ranges::find(assignment.replicas, id) != assignment.replicas.end();
  return assignment.leader == id || (assignment.leader == model::BrokerId() && ours);
}

void Core::put_in_force(const metadata::ClusterImage& image) {
  for (const auto& broker : image.brokers()) {
    if (broker.id == id) epoch_in_force = broker.epoch.value();
  }
}

void Core::adopt(const metadata::ImagePtr& image) {
  std::uint32_t largest = topic_defaults.batch_bytes;
  for (const auto& [name, topic] : image->topics())
    largest = std::max(largest, topic->settings.batch_bytes);
  batch_bytes_max.store(largest, std::memory_order_relaxed);
  image_version.store(image->version(), std::memory_order_relaxed);
}

protocol::ResponseEnvelope Core::envelope() const {
  protocol::ResponseEnvelope envelope;
  envelope.status.broker = id.value();
  envelope.metadata_version = image_version.load(std::memory_order_relaxed);
  return envelope;
}

protocol::Status Core::no_topic(const metadata::ClusterImage& image, std::string_view name) const {
  if (const auto* damage = image.damage_of(name))
    return status(WireError::metadata_unavailable, damage->text);
  return status(WireError::unknown_topic, metadata::unknown_topic_text(image, name));
}

protocol::Status Core::missing(const model::PartitionId& partition) const {
  const auto newest = image();
  const auto topic = newest->find_topic(partition.topic);  // by id: PAR-6
  if (!topic)
    return status(WireError::unknown_topic_id,
                  fmt::format("there is no topic with id {}", partition.topic.hex()));
  const auto* assignment = topic->find(partition.partition);
  if (!assignment)
    return status(WireError::unknown_partition,
                  fmt::format("topic \"{}\" has no partition {}; it has {}", topic->name,
                              partition.partition, topic->partitions.size()));
  if (!answers_for(*assignment))
    return status(
        WireError::not_leader,
        assignment->leader != model::BrokerId()
            ? fmt::format("{}-{} is led by broker {} in epoch {}", topic->name, partition.partition,
                          assignment->leader, assignment->leader_epoch)
            : fmt::format("{}-{} has no leader now: {}", topic->name, partition.partition,
                          why_leaderless(*this, *newest, *assignment)));
  const auto* damage = newest->damage_of(topic->name);
  if (damage && assignment->leader == model::BrokerId())
    return status(WireError::partition_offline, damage->text);
  if (partitions_recovering > 0 && !stopping) {
    return status(WireError::partition_recovering,
                  fmt::format("{}-{} is being recovered", topic->name, partition.partition));
  }
  if (assignment->leader == model::BrokerId() && !stopping)
    return status(WireError::partition_offline,
                  fmt::format("{}-{} has no leader now: {}", topic->name, partition.partition,
                              why_leaderless(*this, *newest, *assignment)));
  return status(stopping ? WireError::shutting_down : WireError::partition_offline,
                fmt::format("{}-{} is not ready", topic->name, partition.partition));
}

std::string Core::partition_name(const model::PartitionId& partition) const {
  const auto topic = image()->find_topic(partition.topic);
  return topic ? fmt::format("{}-{}", topic->name, partition.partition) : partition.text();
}

Worker& Core::worker_of(const model::PartitionId& partition) const {
  return *workers[replication::worker_of(partition, workers.size())];
}

}  // namespace mq::broker
