#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace mq::protocol {

/// Numbers are never reused. 2 (Authenticate) is reserved until listeners can ask for it.
enum class ApiKey : std::uint16_t {
  hello = 1,
  metadata = 3,
  produce = 4,
  fetch = 5,
  list_offsets = 6,
  create_topics = 7,
  delete_topics = 8,
  list_topics = 9,
  describe_topics = 10,
  describe_broker = 11,
  trim_partitions = 12,
  init_producer = 13,
  alter_topics = 14,
  add_partitions = 15,
  pull_image = 16,       ///< between brokers
  report_replicas = 17,  ///< between brokers
  describe_config = 18,
  replica_fetch = 19,  ///< between brokers
  alter_isr = 20,      ///< between brokers
  leave_broker = 21,   ///< between brokers
  control_partitions = 22,
};

struct ApiVersions {
  ApiKey key;
  std::uint8_t min;
  std::uint8_t max;
  friend bool operator==(const ApiVersions&, const ApiVersions&) = default;
};

/// What this release speaks, as Hello's answer tells it.
inline constexpr auto kSupportedApis = std::to_array<ApiVersions>({
    {ApiKey::hello, 0, 0},
    {ApiKey::metadata, 0, 0},
    {ApiKey::produce, 0, 0},
    {ApiKey::fetch, 0, 0},
    {ApiKey::list_offsets, 0, 1},
    {ApiKey::create_topics, 0, 0},
    {ApiKey::delete_topics, 0, 0},
    {ApiKey::list_topics, 0, 0},
    {ApiKey::describe_topics, 0, 0},
    {ApiKey::describe_broker, 0, 0},
    {ApiKey::trim_partitions, 0, 0},
    {ApiKey::init_producer, 0, 0},
    {ApiKey::alter_topics, 0, 0},
    {ApiKey::add_partitions, 0, 0},
    {ApiKey::pull_image, 0, 0},
    {ApiKey::report_replicas, 0, 0},
    {ApiKey::describe_config, 0, 0},
    {ApiKey::alter_isr, 0, 0},
    {ApiKey::control_partitions, 0, 0},
    {ApiKey::leave_broker, 0, 0},
    {ApiKey::replica_fetch, 0, 0},
});

/// "Produce"; "api 77" is for the caller to print when this is empty.
std::string_view api_name(std::uint16_t key) noexcept;

}  // namespace mq::protocol
