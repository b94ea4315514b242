#pragma once

#include <google/protobuf/repeated_field.h>

#include <map>
#include <string>
#include <vector>

#include "protocol/metadata.h"
#include "protocol/proto/metadata.pb.h"
#include "protocol/proto/topics.pb.h"

/// Parts that several messages have. Included by .cc files of this folder only, like codec.h.
namespace mq::protocol::codec {

/// Of one topic.
inline constexpr std::size_t kSettingsMax = 1024;

/// Ascending by number, each once.
template <class Partition>
[[nodiscard]] bool rising(const std::vector<Partition>& partitions) noexcept {
  for (std::size_t i = 1; i < partitions.size(); ++i) {
    if (partitions[i].partition <= partitions[i - 1].partition) return false;
  }
  return true;
}

/// Rising.
[[nodiscard]] bool read_partitions(
    const google::protobuf::RepeatedPtrField<wire::PartitionMetadata>& from,
    std::vector<PartitionMetadata>& to);
void write_partitions(const std::vector<PartitionMetadata>& from,
                      google::protobuf::RepeatedPtrField<wire::PartitionMetadata>& to);

/// Each name once.
[[nodiscard]] bool read_settings(const google::protobuf::RepeatedPtrField<wire::TextSetting>& from,
                                 std::map<std::string, std::string>& to);
void write_settings(const std::map<std::string, std::string>& from,
                    google::protobuf::RepeatedPtrField<wire::TextSetting>& to);

}  // namespace mq::protocol::codec
