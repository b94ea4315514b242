#pragma once

#include <string>
#include <tuple>
#include <vector>

#include "protocol/add_partitions.h"
#include "protocol/alter_isr.h"
#include "protocol/alter_topics.h"
#include "protocol/control_partitions.h"
#include "protocol/describe_broker.h"
#include "protocol/describe_config.h"
#include "protocol/fetch.h"
#include "protocol/hello.h"
#include "protocol/init_producer.h"
#include "protocol/leave_broker.h"
#include "protocol/list_offsets.h"
#include "protocol/metadata.h"
#include "protocol/produce.h"
#include "protocol/pull_image.h"
#include "protocol/replica_fetch.h"
#include "protocol/report_replicas.h"
#include "protocol/topics.h"
#include "protocol/trim_partitions.h"

/// One message of each kind with every field set to something that is not its default.
namespace mq::protocol::testing {

inline base::Uuid sample_uuid(std::uint64_t n) { return base::Uuid::from_random(n, ~n); }
inline model::PartitionId sample_partition(std::int32_t n) {
  return {sample_uuid(static_cast<std::uint64_t>(n)), n};
}
inline RequestEnvelope sample_request_envelope() {
  return {30'000, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "billing"};
}
inline Status sample_status() {
  return Status::of(WireError::not_leader, "topic \"orders\", partition 2: led by broker 3", 1);
}
inline ResponseEnvelope sample_response_envelope() { return {sample_status(), 250, 77}; }

inline HelloRequest sample(HelloRequest*) {
  return {sample_request_envelope(), "0.1.0", 0x1122334455667788, 3, sample_uuid(9)};
}
inline HelloResponse sample(HelloResponse*) {
  return {sample_response_envelope(),
          "0.1.0",
          7,
          sample_uuid(9),
          {kSupportedApis.begin(), kSupportedApis.end()},
          8 << 20,
          1 << 20};
}
inline MetadataRequest sample(MetadataRequest*) {
  return {sample_request_envelope(), true, {"orders", "payments"}, 76};
}
inline MetadataResponse sample(MetadataResponse*) {
  const PartitionMetadata first{0, 1, 5, 6, {1, 2, 3}, {1, 3}, 2};
  const PartitionMetadata second{4, 2, 8, 9, {2, 1}, {2}};
  return {sample_response_envelope(),
          sample_uuid(9),
          1,
          {{1, "broker-1.example", 9500}, {2, "10.0.0.2", 65535, true, "row-b"}},
          {{Status{}, "orders", sample_uuid(4), 1 << 20, {first, second}},
           {sample_status(), "order", {}, 0, {}}}};
}
inline ProduceRequest sample(ProduceRequest*) {
  return {sample_request_envelope(),
          Acks::leader,
          {{sample_partition(0), 1200, 0}, {sample_partition(3), 99, 1'000'000'000'000}}};
}
inline ProduceResponse sample(ProduceResponse*) {
  return {sample_response_envelope(),
          {{sample_partition(0), {}, model::Offset(41), 1'700'000'000'000, model::LeaderEpoch(3)},
           {sample_partition(3), sample_status(), model::Offset(), -1, model::LeaderEpoch()}}};
}
inline FetchRequest sample(FetchRequest*) {
  return {sample_request_envelope(),
          500,
          1,
          4 << 20,
          {{sample_partition(0), model::Offset(0), 1 << 20},
           {sample_partition(3), model::Offset(std::int64_t{1} << 60), 0, true}},
          "hall-2"};
}
inline FetchResponse sample(FetchResponse*) {
  return {sample_response_envelope(),
          {{sample_partition(0),
            {},
            model::Offset(100),
            model::Offset(5),
            model::LeaderEpoch(3),
            4096,
            0},
           {sample_partition(3), sample_status(), {}, {}, {}, 0}}};
}
inline ListOffsetsRequest sample(ListOffsetsRequest*) {
  return {sample_request_envelope(),
          {{sample_partition(0), OffsetPoint::earliest},
           {sample_partition(1), OffsetPoint::latest},
           {sample_partition(2), OffsetPoint::at_time, 1'700'000'000'000}}};
}
inline ListOffsetsResponse sample(ListOffsetsResponse*) {
  return {sample_response_envelope(),
          {{sample_partition(0), {}, model::Offset(12), model::LeaderEpoch(3)},
           {sample_partition(1), sample_status(), {}, {}},
           {sample_partition(2), {}, model::Offset(7), model::LeaderEpoch(3), 1'700'000'000'001}}};
}
inline TrimPartitionsRequest sample(TrimPartitionsRequest*) {
  return {sample_request_envelope(),
          {{sample_partition(0), model::Offset(12)}, {sample_partition(1), model::Offset(0)}}};
}
inline TrimPartitionsResponse sample(TrimPartitionsResponse*) {
  return {
      sample_response_envelope(),
      {{sample_partition(0), {}, model::Offset(12)}, {sample_partition(1), sample_status(), {}}}};
}
inline CreateTopicsRequest sample(CreateTopicsRequest*) {
  return {sample_request_envelope(),
          {{"orders", 12, 3, 2, {{"durability", "disk"}, {"retention.age", "14d"}}}, {"plain"}},
          true};
}
inline CreateTopicsResponse sample(CreateTopicsResponse*) {
  return {sample_response_envelope(),
          {{"orders", {}, sample_uuid(4), 12}, {"plain", sample_status(), {}, 0}}};
}
inline DeleteTopicsRequest sample(DeleteTopicsRequest*) {
  return {sample_request_envelope(), {"orders", "plain"}};
}
inline DeleteTopicsResponse sample(DeleteTopicsResponse*) {
  return {sample_response_envelope(), {{"orders", {}, sample_uuid(4), 12}}};
}
inline ListTopicsRequest sample(ListTopicsRequest*) { return {sample_request_envelope()}; }
inline ListTopicsResponse sample(ListTopicsResponse*) {
  return {sample_response_envelope(),
          {{"orders", sample_uuid(4), 12, 1, std::uint64_t{1} << 40, 1'000'000, 2, 7}}};
}
inline DescribeTopicsRequest sample(DescribeTopicsRequest*) {
  return {sample_request_envelope(), {"orders"}};
}
inline DescribeTopicsResponse sample(DescribeTopicsResponse*) {
  PartitionDescription served{0, 1, 5, {1, 2}, {1}, 10, 90, 100, 1 << 20, 3, "no leader"};
  served.replica_notes = {{1, "is away"}, {2, "its log is damaged"}};
  return {sample_response_envelope(),
          {{"orders",
            sample_status(),
            sample_uuid(4),
            {{"durability", "disk", "built-in"}, {"retention.age", "1h", "topic"}},
            {served}}}};
}
inline DescribeBrokerRequest sample(DescribeBrokerRequest*) { return {sample_request_envelope()}; }
inline DescribeBrokerResponse sample(DescribeBrokerResponse*) {
  DescribeBrokerResponse response;
  response.envelope = sample_response_envelope();
  response.broker_id = 1;
  response.version = "0.1.0";
  response.cluster_id = sample_uuid(9);
  response.metadata_kind = "local";
  response.uptime_ms = 123'456;
  response.process_id = 4242;
  response.resident_bytes = 30 << 20;
  response.cpu_user_ms = 1000;
  response.cpu_system_ms = 500;
  response.workers = 2;
  response.connections = 17;
  response.topics = 3;
  response.partitions = 24;
  response.partitions_led = 9;
  response.partitions_not_serving = 1;
  response.partitions_damaged = 2;
  response.partitions_recovering = 5;
  response.recovery_bytes_read = 1 << 30;
  response.disks = {
      {"/var/lib/mq", "ok", 100, 200, 300, 24, sample_uuid(9), "", 400, 500, 6, 7, 8, 9, 10},
      {"/mnt/b", "failed", 1, 2, 3, 4, {}, "fdatasync failed"}};
  response.counters = {{"appends", 12}, {"invariant_violations.PAR-1", -1}};
  response.warnings = {"partition 4 is corrupt"};
  response.controller = 3;
  response.broker_epoch = 17;
  response.rack = "row-b";
  response.clock_ahead_ms = -86'400'000;
  response.metadata_trouble = "ZooKeeper does not answer";
  response.lease_lost = true;
  response.alerts = {{"damage", 2, "a node does not parse"}, {"images", 3, "they are refused"}};
  return response;
}

inline InitProducerRequest sample(InitProducerRequest*) { return {sample_request_envelope()}; }
inline InitProducerResponse sample(InitProducerResponse*) {
  return {sample_response_envelope(), 5'000'000'000, 3};
}

inline PullImageRequest sample(PullImageRequest*) {
  return {sample_request_envelope(), 2, 17, (std::uint64_t{4} << 32) | 9, 1'800'000'000'123};
}
inline PullImageResponse sample(PullImageResponse*) {
  const model::IsrMember one{model::BrokerId(1), model::BrokerEpoch(16)};
  const model::IsrMember two{model::BrokerId(2), model::BrokerEpoch(11)};
  const ImagePartition first{0, 1, 5, 6, {1, 2}, {one}, {two}, 2, 4};
  const ImagePartition second{4, -1, 8, 9, {2}, {two}, {}, 1};
  return {sample_response_envelope(),
          (std::uint64_t{4} << 32) | 11,
          (std::uint64_t{4} << 32) | 9,
          sample_uuid(9),
          1,
          {{1, 16, "broker-1.example", 9500}, {2, 17, "10.0.0.2", 65535, true, "hall-2"}},
          {{"orders", sample_uuid(4), {{"retention.age", "14d"}}, {first, second}, 4},
           {"plain", sample_uuid(5), {}, {}, 0}},
          {sample_uuid(6), sample_uuid(7)},
          {{sample_uuid(6), {1, 3}}, {sample_uuid(8), {}}},
          {{"/topics/lost", "lost", "it does not parse"}, {"/topics/%", "", "no topic"}},
          {ClockVerdict::agreed, 1'800'000'000'456, 0, 3},
          1'999,
          {{"durability", "memory"}, {"segment.bytes", "64MiB"}}};
}
inline ReportReplicasRequest sample(ReportReplicasRequest*) {
  return {sample_request_envelope(),
          2,
          17,
          {{sample_partition(0),
            ReplicaState::opened,
            model::LeaderEpoch(5),
            model::Offset(900),
            model::Offset(880),
            model::BrokerEpoch(16),
            {},
            {{model::Offset(700), 4096, model::Offset(750), model::Offset(760)}}},
           {sample_partition(3), ReplicaState::failed, {}, {}, {}, {}, sample_status(), {}}},
          {sample_uuid(6)}};
}
inline ReportReplicasResponse sample(ReportReplicasResponse*) {
  return {sample_response_envelope()};
}
inline ReplicaFetchRequest sample(ReplicaFetchRequest*) {
  return {sample_request_envelope(),
          2,
          17,
          500,
          4 << 20,
          {sample_partition(5)},
          {{sample_partition(0), 7, model::LeaderEpoch(5), model::LeaderEpoch(4), model::Offset(3),
            model::Offset(900), model::Offset(880)}},
          {{sample_partition(3), 2, model::Offset(std::int64_t{1} << 60), model::Offset(12),
            model::Offset(5)},
           {sample_partition(4), 4'000'000'000, model::Offset(0), model::Offset(0)}}};
}
inline ReplicaFetchResponse sample(ReplicaFetchResponse*) {
  const Divergence behind{model::LeaderEpoch(3), model::Offset(870)};
  return {sample_response_envelope(),
          {{sample_partition(0),
            7,
            {},
            model::LeaderEpoch(5),
            model::Offset(860),
            model::Offset(3),
            behind,
            0},
           {sample_partition(3),
            2,
            {},
            model::LeaderEpoch(1),
            model::Offset(9),
            model::Offset(0),
            std::nullopt,
            1 << 20},
           {sample_partition(4), 1, sample_status(), {}, {}, {}, std::nullopt, 0}}};
}
inline AlterIsrRequest sample(AlterIsrRequest*) {
  const model::IsrMember one{model::BrokerId(1), model::BrokerEpoch(16)};
  const model::IsrMember two{model::BrokerId(2), model::BrokerEpoch(11)};
  return {sample_request_envelope(),
          1,
          16,
          {{sample_partition(0), model::LeaderEpoch(5), model::PartitionVersion(9), {one, two}},
           {sample_partition(3), model::LeaderEpoch(6), model::PartitionVersion(0), {one}}}};
}
inline AlterIsrResponse sample(AlterIsrResponse*) {
  const model::IsrMember one{model::BrokerId(1), model::BrokerEpoch(16)};
  const model::IsrMember two{model::BrokerId(2), model::BrokerEpoch(11)};
  const IsrState first{
      model::BrokerId(1), model::LeaderEpoch(5), model::PartitionVersion(10), {one, two}, 2};
  return {sample_response_envelope(),
          {{sample_partition(0), {}, first}, {sample_partition(3), sample_status(), {}}}};
}
inline ControlPartitionsRequest sample(ControlPartitionsRequest*) {
  return {sample_request_envelope(),
          PartitionAction::acknowledge_loss,
          3,
          {sample_partition(0), sample_partition(7)}};
}
inline ControlPartitionsResponse sample(ControlPartitionsResponse*) {
  return {sample_response_envelope(),
          {{sample_partition(0), {}, true, 2},
           {sample_partition(7), Status::of(WireError::invalid_request, "it is away", 2)}}};
}
inline LeaveBrokerRequest sample(LeaveBrokerRequest*) { return {sample_request_envelope(), 2, 17}; }
inline LeaveBrokerResponse sample(LeaveBrokerResponse*) {
  return {sample_response_envelope(), "orders-1, orders-2", "payments-0 and 7 more"};
}

inline AlterTopicsRequest sample(AlterTopicsRequest*) {
  return {sample_request_envelope(),
          {{"orders", {{"durability", "memory"}, {"retention.age", "7d"}}, {"segment.bytes"}},
           {"plain", {}, {"batch.bytes", "segment.age"}}}};
}
inline AlterTopicsResponse sample(AlterTopicsResponse*) {
  return {sample_response_envelope(),
          {{"orders", {}, sample_uuid(4), 12}, {"plain", sample_status(), {}, 0}}};
}
inline AddPartitionsRequest sample(AddPartitionsRequest*) {
  return {sample_request_envelope(), {{"orders", 24}, {"plain", 2}}};
}
inline AddPartitionsResponse sample(AddPartitionsResponse*) {
  return {sample_response_envelope(),
          {{"orders", {}, sample_uuid(4), 24}, {"plain", sample_status(), {}, 0}}};
}
inline DescribeConfigRequest sample(DescribeConfigRequest*) { return {sample_request_envelope()}; }
inline DescribeConfigResponse sample(DescribeConfigResponse*) {
  return {sample_response_envelope(),
          {{"broker.id", "1", "/etc/mq/broker.toml:2"}, {"log.level", "\"info\"", "built-in"}}};
}

template <class Message>
Message sample() {
  return sample(static_cast<Message*>(nullptr));
}

using Requests =
    std::tuple<HelloRequest, MetadataRequest, ProduceRequest, FetchRequest, ListOffsetsRequest,
               CreateTopicsRequest, DeleteTopicsRequest, ListTopicsRequest, DescribeTopicsRequest,
               DescribeBrokerRequest, InitProducerRequest, TrimPartitionsRequest, PullImageRequest,
               ReportReplicasRequest, AlterIsrRequest, ControlPartitionsRequest, LeaveBrokerRequest,
               AlterTopicsRequest, AddPartitionsRequest, DescribeConfigRequest,
               ReplicaFetchRequest>;
using Responses =
    std::tuple<HelloResponse, MetadataResponse, ProduceResponse, FetchResponse, ListOffsetsResponse,
               CreateTopicsResponse, DeleteTopicsResponse, ListTopicsResponse,
               DescribeTopicsResponse, DescribeBrokerResponse, InitProducerResponse,
               TrimPartitionsResponse, PullImageResponse, ReportReplicasResponse, AlterIsrResponse,
               LeaveBrokerResponse, ControlPartitionsResponse, AlterTopicsResponse,
               AddPartitionsResponse, DescribeConfigResponse, ReplicaFetchResponse>;

// One name for all decoders, chosen by the type that is wanted.
#define MQ_TEST_DECODER(Type, function) \
  inline base::Result<Type> decode_as(base::Bytes header, const Type*) { return function(header); }
MQ_TEST_DECODER(HelloRequest, decode_hello_request)
MQ_TEST_DECODER(HelloResponse, decode_hello_response)
MQ_TEST_DECODER(MetadataRequest, decode_metadata_request)
MQ_TEST_DECODER(MetadataResponse, decode_metadata_response)
MQ_TEST_DECODER(ProduceRequest, decode_produce_request)
MQ_TEST_DECODER(ProduceResponse, decode_produce_response)
MQ_TEST_DECODER(FetchRequest, decode_fetch_request)
MQ_TEST_DECODER(FetchResponse, decode_fetch_response)
MQ_TEST_DECODER(ListOffsetsRequest, decode_list_offsets_request)
MQ_TEST_DECODER(ListOffsetsResponse, decode_list_offsets_response)
MQ_TEST_DECODER(CreateTopicsRequest, decode_create_topics_request)
MQ_TEST_DECODER(CreateTopicsResponse, decode_create_topics_response)
MQ_TEST_DECODER(DeleteTopicsRequest, decode_delete_topics_request)
MQ_TEST_DECODER(DeleteTopicsResponse, decode_delete_topics_response)
MQ_TEST_DECODER(ListTopicsRequest, decode_list_topics_request)
MQ_TEST_DECODER(ListTopicsResponse, decode_list_topics_response)
MQ_TEST_DECODER(DescribeTopicsRequest, decode_describe_topics_request)
MQ_TEST_DECODER(DescribeTopicsResponse, decode_describe_topics_response)
MQ_TEST_DECODER(DescribeBrokerRequest, decode_describe_broker_request)
MQ_TEST_DECODER(DescribeBrokerResponse, decode_describe_broker_response)
MQ_TEST_DECODER(InitProducerRequest, decode_init_producer_request)
MQ_TEST_DECODER(InitProducerResponse, decode_init_producer_response)
MQ_TEST_DECODER(TrimPartitionsRequest, decode_trim_partitions_request)
MQ_TEST_DECODER(TrimPartitionsResponse, decode_trim_partitions_response)
MQ_TEST_DECODER(PullImageRequest, decode_pull_image_request)
MQ_TEST_DECODER(PullImageResponse, decode_pull_image_response)
MQ_TEST_DECODER(ReportReplicasRequest, decode_report_replicas_request)
MQ_TEST_DECODER(ReportReplicasResponse, decode_report_replicas_response)
MQ_TEST_DECODER(ReplicaFetchRequest, decode_replica_fetch_request)
MQ_TEST_DECODER(ReplicaFetchResponse, decode_replica_fetch_response)
MQ_TEST_DECODER(AlterIsrRequest, decode_alter_isr_request)
MQ_TEST_DECODER(AlterIsrResponse, decode_alter_isr_response)
MQ_TEST_DECODER(ControlPartitionsRequest, decode_control_partitions_request)
MQ_TEST_DECODER(ControlPartitionsResponse, decode_control_partitions_response)
MQ_TEST_DECODER(LeaveBrokerRequest, decode_leave_broker_request)
MQ_TEST_DECODER(LeaveBrokerResponse, decode_leave_broker_response)
MQ_TEST_DECODER(AlterTopicsRequest, decode_alter_topics_request)
MQ_TEST_DECODER(AlterTopicsResponse, decode_alter_topics_response)
MQ_TEST_DECODER(AddPartitionsRequest, decode_add_partitions_request)
MQ_TEST_DECODER(AddPartitionsResponse, decode_add_partitions_response)
MQ_TEST_DECODER(DescribeConfigRequest, decode_describe_config_request)
MQ_TEST_DECODER(DescribeConfigResponse, decode_describe_config_response)
#undef MQ_TEST_DECODER

template <class Message>
base::Result<Message> decode_as(base::Bytes header) {
  return decode_as(header, static_cast<const Message*>(nullptr));
}

}  // namespace mq::protocol::testing
