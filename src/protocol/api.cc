#include "protocol/api.h"

namespace mq::protocol {

std::string_view api_name(std::uint16_t key) noexcept {
  switch (static_cast<ApiKey>(key)) {
    case ApiKey::hello:
      return "Hello";
    case ApiKey::metadata:
      return "Metadata";
    case ApiKey::produce:
      return "Produce";
    case ApiKey::fetch:
      return "Fetch";
    case ApiKey::list_offsets:
      return "ListOffsets";
    case ApiKey::create_topics:
      return "CreateTopics";
    case ApiKey::delete_topics:
      return "DeleteTopics";
    case ApiKey::list_topics:
      return "ListTopics";
    case ApiKey::describe_topics:
      return "DescribeTopics";
    case ApiKey::init_producer:
      return "InitProducer";
    case ApiKey::describe_broker:
      return "DescribeBroker";
    case ApiKey::trim_partitions:
      return "TrimPartitions";
    case ApiKey::alter_topics:
      return "AlterTopics";
    case ApiKey::add_partitions:
      return "AddPartitions";
    case ApiKey::describe_config:
      return "DescribeConfig";
    case ApiKey::pull_image:
      return "PullImage";
    case ApiKey::report_replicas:
      return "ReportReplicas";
    case ApiKey::replica_fetch:
      return "ReplicaFetch";
    case ApiKey::alter_isr:
      return "AlterIsr";
    case ApiKey::control_partitions:
      return "ControlPartitions";
    case ApiKey::leave_broker:
      return "LeaveBroker";
  }
  return {};
}

}  // namespace mq::protocol
