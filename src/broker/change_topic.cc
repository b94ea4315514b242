#include "broker/change_topic.h"

namespace mq::broker {

std::optional<protocol::Status> refuse_change(const Core& core) {
  if (!core.membership->controller()) return core.membership->not_controller();
  if (core.partitions_recovering == 0 || core.stopping) return std::nullopt;
  return core.status(protocol::WireError::partition_recovering,
                     "topics are not changed before every log has been recovered");
}

}  // namespace mq::broker
