#include "broker/handlers/handlers.h"

namespace mq::broker {
namespace {

Handler handler_of(protocol::ApiKey key) noexcept {
  switch (key) {
    case protocol::ApiKey::hello:
      return handle_hello;
    case protocol::ApiKey::metadata:
      return handle_metadata;
    case protocol::ApiKey::produce:
      return handle_produce;
    case protocol::ApiKey::fetch:
      return handle_fetch;
    case protocol::ApiKey::list_offsets:
      return handle_list_offsets;
    case protocol::ApiKey::create_topics:
      return handle_create_topics;
    case protocol::ApiKey::delete_topics:
      return handle_delete_topics;
    case protocol::ApiKey::list_topics:
      return handle_list_topics;
    case protocol::ApiKey::describe_topics:
      return handle_describe_topics;
    case protocol::ApiKey::describe_broker:
      return handle_describe_broker;
    case protocol::ApiKey::trim_partitions:
      return handle_trim_partitions;
    case protocol::ApiKey::init_producer:
      return handle_init_producer;
    case protocol::ApiKey::alter_topics:
      return handle_alter_topics;
    case protocol::ApiKey::add_partitions:
      return handle_add_partitions;
    case protocol::ApiKey::describe_config:
      return handle_describe_config;
    case protocol::ApiKey::pull_image:
      return handle_pull_image;
    case protocol::ApiKey::report_replicas:
      return handle_report_replicas;
    case protocol::ApiKey::replica_fetch:
      return handle_replica_fetch;
    case protocol::ApiKey::alter_isr:
      return handle_alter_isr;
    case protocol::ApiKey::control_partitions:
      return handle_control_partitions;
    case protocol::ApiKey::leave_broker:
      return handle_leave_broker;
  }
  return nullptr;
}

}  // namespace

const Api* find_api(std::uint16_t key) noexcept {
  static const auto table = [] {
    std::array<Api, protocol::kSupportedApis.size()> apis{};
    for (std::size_t i = 0; i < apis.size(); ++i)
      apis[i] = {protocol::kSupportedApis[i], handler_of(protocol::kSupportedApis[i].key)};
    return apis;
  }();
  for (const Api& api : table) {
    if (static_cast<std::uint16_t>(api.versions.key) == key) return &api;
  }
  return nullptr;
}

}  // namespace mq::broker
