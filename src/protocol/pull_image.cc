#include "protocol/pull_image.h"

#include "protocol/codec.h"
#include "protocol/partition_codec.h"
#include "protocol/proto/pull_image.pb.h"

namespace mq::protocol {
namespace {

bool read_request(const wire::PullImageRequest& from, PullImageRequest& to) {
  to.have_version = from.have_version();
  return codec::read_envelope(from, to.envelope) && codec::read_integer(from.broker(), to.broker) &&
         codec::read_integer(from.broker_epoch(), to.broker_epoch) &&
         codec::read_integer(from.wall_clock_ms(), to.wall_clock_ms);
}

void write_request(const PullImageRequest& from, wire::PullImageRequest& to) {
  codec::write_envelope(from.envelope, to);
  to.set_broker(from.broker);
  to.set_broker_epoch(from.broker_epoch);
  to.set_have_version(from.have_version);
  to.set_wall_clock_ms(static_cast<std::uint64_t>(from.wall_clock_ms));
}

bool read_broker(const wire::ImageBroker& from, ImageBroker& to) {
  to.away = from.away();
  return codec::read_integer(from.id(), to.id) && codec::read_integer(from.epoch(), to.epoch) &&
         codec::read_text(from.host(), to.host, codec::kNameBytesMax) &&
         codec::read_text(from.rack(), to.rack, codec::kRackBytesMax) &&
         codec::read_integer(from.port(), to.port) && to.port <= 65'535;
}

void write_broker(const ImageBroker& from, wire::ImageBroker& to) {
  to.set_id(from.id);
  to.set_epoch(from.epoch);
  to.set_host(codec::sendable_text(from.host, codec::kNameBytesMax));
  to.set_port(from.port);
  to.set_away(from.away);
  to.set_rack(codec::sendable_text(from.rack, codec::kRackBytesMax));
}

/// A controller of an earlier release names no epochs; -1 is nobody's.
bool read_isr(const wire::ImagePartition& from, std::vector<model::IsrMember>& to) {
  const auto& brokers = from.in_sync();
  const auto& epochs = from.in_sync_epochs();
  if (static_cast<std::size_t>(brokers.size()) > codec::kReplicasMax ||
      (!epochs.empty() && epochs.size() != brokers.size()))
    return false;
  to.resize(static_cast<std::size_t>(brokers.size()));
  for (std::size_t i = 0; i < to.size(); ++i) {
    const int at = static_cast<int>(i);
    if (!codec::read_id(brokers[at], to[i].broker)) return false;
    if (!epochs.empty() && !codec::read_id(epochs[at], to[i].epoch)) return false;
  }
  return true;
}

bool read_partition(const wire::ImagePartition& from, ImagePartition& to) {
  return codec::read_integer(from.partition(), to.partition, 0) &&
         codec::read_integer(from.leader(), to.leader) &&
         codec::read_integer(from.leader_epoch(), to.leader_epoch) &&
         codec::read_integer(from.partition_version(), to.partition_version) &&
         codec::read_brokers(from.replicas(), to.replicas) && read_isr(from, to.isr) &&
         codec::read_members(from.elr(), to.elr) &&
         codec::read_integer(from.min_isr(), to.min_isr) &&
         codec::read_plus_one(from.loss_epoch_plus_one(), to.loss_epoch) &&
         codec::read_plus_one(from.loss_start_plus_one(), to.loss_start) &&
         codec::read_plus_one(from.loss_end_plus_one(), to.loss_end);
}

void write_partition(const ImagePartition& from, wire::ImagePartition& to) {
  to.set_partition(from.partition);
  to.set_leader(from.leader);
  to.set_leader_epoch(from.leader_epoch);
  to.set_partition_version(from.partition_version);
  codec::write_brokers(from.replicas, *to.mutable_replicas());
  for (const auto& member : from.isr) {
    to.add_in_sync(member.broker.value());
    to.add_in_sync_epochs(member.epoch.value());
  }
  codec::write_members(from.elr, *to.mutable_elr());
  to.set_min_isr(from.min_isr);
  to.set_loss_epoch_plus_one(codec::plus_one(from.loss_epoch));
  to.set_loss_start_plus_one(static_cast<std::uint64_t>(from.loss_start + 1));
  to.set_loss_end_plus_one(static_cast<std::uint64_t>(from.loss_end + 1));
}

bool read_topic(const wire::ImageTopic& from, ImageTopic& to) {
  return codec::read_plus_one(from.hidden_from_plus_one(), to.hidden_from) &&
         codec::read_text(from.name(), to.name, codec::kNameBytesMax) &&
         codec::read_uuid(from.id(), to.id) &&
         codec::read_settings(from.overrides(), to.overrides) &&
         codec::read_all(from.partitions(), to.partitions, read_partition) &&
         codec::rising(to.partitions);
}

void write_topic(const ImageTopic& from, wire::ImageTopic& to) {
  to.set_name(codec::sendable_text(from.name, codec::kNameBytesMax));
  to.set_id(from.id.raw());
  codec::write_settings(from.overrides, *to.mutable_overrides());
  codec::write_all(from.partitions, *to.mutable_partitions(), write_partition);
  to.set_hidden_from_plus_one(static_cast<std::uint64_t>(std::int64_t{from.hidden_from} + 1));
}

bool read_deleting(const wire::DeletingTopic& from, DeletingTopic& to) {
  return codec::read_uuid(from.id(), to.id) && codec::read_brokers(from.brokers(), to.brokers);
}

void write_deleting(const DeletingTopic& from, wire::DeletingTopic& to) {
  to.set_id(from.id.raw());
  codec::write_brokers(from.brokers, *to.mutable_brokers());
}

bool read_damage(const wire::ImageDamage& from, ImageDamage& to) {
  return codec::read_text(from.path(), to.path, codec::kTextBytesMax) &&
         codec::read_text(from.topic(), to.topic, codec::kNameBytesMax) &&
         codec::read_text(from.text(), to.text, codec::kTextBytesMax);
}

void write_damage(const ImageDamage& from, wire::ImageDamage& to) {
  to.set_path(codec::sendable_text(from.path, codec::kTextBytesMax));
  to.set_topic(codec::sendable_text(from.topic, codec::kNameBytesMax));
  to.set_text(codec::sendable_text(from.text, codec::kTextBytesMax));
}

/// What a later release may say besides is not known here.
bool read_time(const wire::ClusterTime& from, ClusterTime& to) {
  const bool known = from.verdict() <= static_cast<std::uint64_t>(ClockVerdict::split);
  to.verdict = known ? static_cast<ClockVerdict>(from.verdict()) : ClockVerdict::unknown;
  return codec::read_integer(from.median_ms(), to.median_ms) &&
         codec::read_integer(from.spread_ms(), to.spread_ms) &&
         codec::read_integer(from.brokers(), to.brokers);
}

void write_time(const ClusterTime& from, wire::ClusterTime& to) {
  to.set_verdict(static_cast<std::uint64_t>(from.verdict));
  to.set_median_ms(static_cast<std::uint64_t>(from.median_ms));
  to.set_spread_ms(static_cast<std::uint64_t>(from.spread_ms));
  to.set_brokers(from.brokers);
}

bool read_response(const wire::PullImageResponse& from, PullImageResponse& to) {
  to.version = from.version();
  to.base_version = from.base_version();
  return codec::read_envelope(from, to.envelope) &&
         codec::read_optional_uuid(from.cluster_id(), to.cluster_id) &&
         codec::read_integer(from.controller(), to.controller) &&
         codec::read_all(from.brokers(), to.brokers, read_broker) &&
         codec::read_all(from.topics(), to.topics, read_topic) &&
         codec::read_uuids(from.removed(), to.removed) &&
         codec::read_all(from.deleting(), to.deleting, read_deleting) &&
         codec::read_all(from.damage(), to.damage, read_damage) &&
         read_time(from.cluster_time(), to.cluster_time) &&
         codec::read_integer(from.held_ms(), to.held_ms) &&
         codec::read_settings(from.topic_defaults(), to.topic_defaults);
}

void write_response(const PullImageResponse& from, wire::PullImageResponse& to) {
  codec::write_envelope(from.envelope, to);
  to.set_version(from.version);
  to.set_base_version(from.base_version);
  to.set_cluster_id(codec::optional_uuid(from.cluster_id));
  to.set_controller(from.controller);
  codec::write_all(from.brokers, *to.mutable_brokers(), write_broker);
  codec::write_all(from.topics, *to.mutable_topics(), write_topic);
  codec::write_uuids(from.removed, *to.mutable_removed());
  codec::write_all(from.deleting, *to.mutable_deleting(), write_deleting);
  codec::write_all(from.damage, *to.mutable_damage(), write_damage);
  if (from.cluster_time != ClusterTime()) write_time(from.cluster_time, *to.mutable_cluster_time());
  to.set_held_ms(static_cast<std::uint64_t>(from.held_ms));
  codec::write_settings(from.topic_defaults, *to.mutable_topic_defaults());
}

}  // namespace

std::string encode(const PullImageRequest& request) {
  return codec::encode(request, write_request);
}
std::string encode(const PullImageResponse& response) {
  return codec::encode(response, write_response);
}
base::Result<PullImageRequest> decode_pull_image_request(base::Bytes header) {
  return codec::decode(header, read_request);
}
base::Result<PullImageResponse> decode_pull_image_response(base::Bytes header) {
  return codec::decode(header, read_response);
}

}  // namespace mq::protocol
