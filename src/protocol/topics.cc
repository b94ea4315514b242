#include "protocol/topics.h"

#include "protocol/codec.h"
#include "protocol/partition_codec.h"
#include "protocol/topics_codec.h"

namespace mq::protocol {
namespace {

bool read_new_topic(const wire::NewTopic& from, NewTopic& to) {
  return codec::read_text(from.name(), to.name, codec::kNameBytesMax) &&
         codec::read_integer(from.partitions(), to.partitions) &&
         codec::read_integer(from.replicas(), to.replicas) &&
         codec::read_integer(from.min_isr(), to.min_isr) &&
         codec::read_settings(from.settings(), to.settings);
}

void write_new_topic(const NewTopic& from, wire::NewTopic& to) {
  to.set_name(codec::sendable_text(from.name, codec::kNameBytesMax));
  to.set_partitions(from.partitions);
  to.set_replicas(from.replicas);
  to.set_min_isr(from.min_isr);
  codec::write_settings(from.settings, *to.mutable_settings());
}

bool read_create(const wire::CreateTopicsRequest& from, CreateTopicsRequest& to) {
  to.validate_only = from.validate_only();
  return codec::read_envelope(from, to.envelope) &&
         codec::read_all(from.topics(), to.topics, read_new_topic);
}

void write_create(const CreateTopicsRequest& from, wire::CreateTopicsRequest& to) {
  codec::write_envelope(from.envelope, to);
  codec::write_all(from.topics, *to.mutable_topics(), write_new_topic);
  to.set_validate_only(from.validate_only);
}

/// The requests of delete and describe have one shape.
template <class Message, class Struct>
bool read_named(const Message& from, Struct& to) {
  return codec::read_envelope(from, to.envelope) && codec::read_names(from.names(), to.names);
}
template <class Struct, class Message>
void write_named(const Struct& from, Message& to) {
  codec::write_envelope(from.envelope, to);
  codec::write_names(from.names, *to.mutable_names());
}

bool read_list(const wire::ListTopicsRequest& from, ListTopicsRequest& to) {
  return codec::read_envelope(from, to.envelope);
}

void write_list(const ListTopicsRequest& from, wire::ListTopicsRequest& to) {
  codec::write_envelope(from.envelope, to);
}

bool read_summary(const wire::TopicSummary& from, TopicSummary& to) {
  to.bytes = from.bytes();
  to.records = from.records();
  return codec::read_text(from.name(), to.name, codec::kNameBytesMax) &&
         codec::read_uuid(from.id(), to.id) &&
         codec::read_integer(from.partitions(), to.partitions) &&
         codec::read_integer(from.replicas(), to.replicas) &&
         codec::read_integer(from.partitions_not_serving(), to.partitions_not_serving) &&
         codec::read_integer(from.partitions_led(), to.partitions_led);
}

void write_summary(const TopicSummary& from, wire::TopicSummary& to) {
  to.set_name(codec::sendable_text(from.name, codec::kNameBytesMax));
  to.set_id(from.id.raw());
  to.set_partitions(static_cast<std::uint64_t>(from.partitions));
  to.set_replicas(static_cast<std::uint64_t>(from.replicas));
  to.set_bytes(from.bytes);
  to.set_records(from.records);
  to.set_partitions_not_serving(static_cast<std::uint64_t>(from.partitions_not_serving));
  to.set_partitions_led(static_cast<std::uint64_t>(from.partitions_led));
}

bool read_summaries(const wire::ListTopicsResponse& from, ListTopicsResponse& to) {
  return codec::read_envelope(from, to.envelope) &&
         codec::read_all(from.topics(), to.topics, read_summary);
}

void write_summaries(const ListTopicsResponse& from, wire::ListTopicsResponse& to) {
  codec::write_envelope(from.envelope, to);
  codec::write_all(from.topics, *to.mutable_topics(), write_summary);
}

bool read_setting(const wire::TopicSetting& from, TopicSetting& to) {
  return codec::read_text(from.name(), to.name, codec::kNameBytesMax) &&
         codec::read_text(from.value(), to.value, codec::kNameBytesMax) &&
         codec::read_text(from.origin(), to.origin, codec::kNameBytesMax);
}

void write_setting(const TopicSetting& from, wire::TopicSetting& to) {
  to.set_name(codec::sendable_text(from.name, codec::kNameBytesMax));
  to.set_value(codec::sendable_text(from.value, codec::kNameBytesMax));
  to.set_origin(codec::sendable_text(from.origin, codec::kNameBytesMax));
}

bool read_follower(const wire::FollowerDescription& from, FollowerDescription& to) {
  return codec::read_integer(from.broker(), to.broker) &&
         codec::read_integer(from.confirmed_end(), to.confirmed_end) &&
         codec::read_integer(from.behind_ms(), to.behind_ms);
}

void write_follower(const FollowerDescription& from, wire::FollowerDescription& to) {
  to.set_broker(from.broker);
  to.set_confirmed_end(from.confirmed_end);
  to.set_behind_ms(from.behind_ms);
}

bool read_note(const wire::ReplicaNote& from, ReplicaNote& to) {
  return codec::read_integer(from.broker(), to.broker) &&
         codec::read_text(from.text(), to.text, codec::kTextBytesMax);
}

void write_note(const ReplicaNote& from, wire::ReplicaNote& to) {
  to.set_broker(from.broker);
  to.set_text(codec::sendable_text(from.text, codec::kTextBytesMax));
}

bool read_partition(const wire::PartitionDescription& from, PartitionDescription& to) {
  to.bytes = from.bytes();
  return codec::read_integer(from.partition(), to.partition, 0) &&
         codec::read_integer(from.leader(), to.leader) &&
         codec::read_integer(from.leader_epoch(), to.leader_epoch) &&
         codec::read_brokers(from.replicas(), to.replicas) &&
         codec::read_brokers(from.in_sync(), to.in_sync) &&
         codec::read_integer(from.log_start_offset(), to.log_start_offset) &&
         codec::read_integer(from.high_watermark(), to.high_watermark) &&
         codec::read_integer(from.log_end_offset(), to.log_end_offset) &&
         codec::read_integer(from.segments(), to.segments) &&
         codec::read_text(from.note(), to.note, codec::kTextBytesMax) &&
         codec::read_integer(from.min_isr(), to.min_isr) &&
         codec::read_plus_one(from.loss_epoch_plus_one(), to.loss_epoch) &&
         codec::read_plus_one(from.loss_start_plus_one(), to.loss_start) &&
         codec::read_plus_one(from.loss_end_plus_one(), to.loss_end) &&
         codec::read_all(from.followers(), to.followers, read_follower) &&
         codec::read_all(from.replica_notes(), to.replica_notes, read_note);
}

void write_partition(const PartitionDescription& from, wire::PartitionDescription& to) {
  to.set_partition(from.partition);
  to.set_leader(from.leader);
  to.set_leader_epoch(from.leader_epoch);
  codec::write_brokers(from.replicas, *to.mutable_replicas());
  codec::write_brokers(from.in_sync, *to.mutable_in_sync());
  to.set_log_start_offset(from.log_start_offset);
  to.set_high_watermark(from.high_watermark);
  to.set_log_end_offset(from.log_end_offset);
  to.set_bytes(from.bytes);
  to.set_segments(from.segments);
  to.set_note(codec::sendable_text(from.note, codec::kTextBytesMax));
  to.set_min_isr(from.min_isr);
  to.set_loss_epoch_plus_one(static_cast<std::uint64_t>(std::int64_t{from.loss_epoch} + 1));
  to.set_loss_start_plus_one(static_cast<std::uint64_t>(from.loss_start + 1));
  to.set_loss_end_plus_one(static_cast<std::uint64_t>(from.loss_end + 1));
  codec::write_all(from.followers, *to.mutable_followers(), write_follower);
  codec::write_all(from.replica_notes, *to.mutable_replica_notes(), write_note);
}

bool read_topic(const wire::TopicDescription& from, TopicDescription& to) {
  return codec::read_text(from.name(), to.name, codec::kNameBytesMax) &&
         codec::read_entry_status(from, to.status) && codec::read_optional_uuid(from.id(), to.id) &&
         codec::read_all(from.settings(), to.settings, read_setting, codec::kSettingsMax) &&
         codec::read_all(from.partitions(), to.partitions, read_partition);
}

void write_topic(const TopicDescription& from, wire::TopicDescription& to) {
  to.set_name(codec::sendable_text(from.name, codec::kNameBytesMax));
  codec::write_entry_status(from.status, to);
  to.set_id(codec::optional_uuid(from.id));
  codec::write_all(from.settings, *to.mutable_settings(), write_setting);
  codec::write_all(from.partitions, *to.mutable_partitions(), write_partition);
}

bool read_descriptions(const wire::DescribeTopicsResponse& from, DescribeTopicsResponse& to) {
  return codec::read_envelope(from, to.envelope) &&
         codec::read_all(from.topics(), to.topics, read_topic);
}

void write_descriptions(const DescribeTopicsResponse& from, wire::DescribeTopicsResponse& to) {
  codec::write_envelope(from.envelope, to);
  codec::write_all(from.topics, *to.mutable_topics(), write_topic);
}

}  // namespace

std::string encode(const CreateTopicsRequest& request) {
  return codec::encode(request, write_create);
}
std::string encode(const CreateTopicsResponse& response) {
  return codec::encode(response,
                       codec::write_results<CreateTopicsResponse, wire::CreateTopicsResponse>);
}
std::string encode(const DeleteTopicsRequest& request) {
  return codec::encode(request, write_named<DeleteTopicsRequest, wire::DeleteTopicsRequest>);
}
std::string encode(const DeleteTopicsResponse& response) {
  return codec::encode(response,
                       codec::write_results<DeleteTopicsResponse, wire::DeleteTopicsResponse>);
}
std::string encode(const ListTopicsRequest& request) { return codec::encode(request, write_list); }
std::string encode(const ListTopicsResponse& response) {
  return codec::encode(response, write_summaries);
}
std::string encode(const DescribeTopicsRequest& request) {
  return codec::encode(request, write_named<DescribeTopicsRequest, wire::DescribeTopicsRequest>);
}
std::string encode(const DescribeTopicsResponse& response) {
  return codec::encode(response, write_descriptions);
}

base::Result<CreateTopicsRequest> decode_create_topics_request(base::Bytes header) {
  return codec::decode(header, read_create);
}
base::Result<CreateTopicsResponse> decode_create_topics_response(base::Bytes header) {
  return codec::decode(header,
                       codec::read_results<wire::CreateTopicsResponse, CreateTopicsResponse>);
}
base::Result<DeleteTopicsRequest> decode_delete_topics_request(base::Bytes header) {
  return codec::decode(header, read_named<wire::DeleteTopicsRequest, DeleteTopicsRequest>);
}
base::Result<DeleteTopicsResponse> decode_delete_topics_response(base::Bytes header) {
  return codec::decode(header,
                       codec::read_results<wire::DeleteTopicsResponse, DeleteTopicsResponse>);
}
base::Result<ListTopicsRequest> decode_list_topics_request(base::Bytes header) {
  return codec::decode(header, read_list);
}
base::Result<ListTopicsResponse> decode_list_topics_response(base::Bytes header) {
  return codec::decode(header, read_summaries);
}
base::Result<DescribeTopicsRequest> decode_describe_topics_request(base::Bytes header) {
  return codec::decode(header, read_named<wire::DescribeTopicsRequest, DescribeTopicsRequest>);
}
base::Result<DescribeTopicsResponse> decode_describe_topics_response(base::Bytes header) {
  return codec::decode(header, read_descriptions);
}

}  // namespace mq::protocol
