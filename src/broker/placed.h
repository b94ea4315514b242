#pragma once

#include <algorithm>

#include "metadata/cluster_image.h"

namespace mq::broker {

/// A partition as an image has it.
struct Placed {
  metadata::TopicPtr topic;  ///< null: there is no such topic, or no image
  const metadata::PartitionAssignment* assignment = nullptr;  ///< null: nor such a partition
};
[[nodiscard]] inline Placed placed(const metadata::ImagePtr& image, const model::PartitionId& id) {
  Placed found;
  if (image) found.topic = image->find_topic(id.topic);
  if (found.topic) found.assignment = found.topic->find(id.partition);
  return found;
}

[[nodiscard]] inline bool in_isr(const metadata::PartitionAssignment& assignment,
                                 model::BrokerId broker) {
  return std::ranges::count(assignment.isr, broker, &model::IsrMember::broker) > 0;
}

}  // namespace mq::broker
