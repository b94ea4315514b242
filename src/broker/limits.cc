#include "broker/limits.h"

#include "protocol/frame.h"

namespace mq::broker {

Limits limits_of(const config::BrokerConfig& config, std::size_t workers) {
  Limits limits;
  // Three quarters for what comes in, one for what goes out; a worker always has room for one
  // request of the largest kind.
  const std::size_t share = config.limits.memory_bytes / workers;
  const std::size_t largest = protocol::kBatchBytesHardMax + protocol::kFrameSlackBytes;
  limits.request_bytes = std::max<std::size_t>(share / 4 * 3, largest);
  limits.answer_bytes = std::max<std::size_t>(share / 4, largest);
  limits.connections = config.limits.connections;
  limits.hello_timeout = config.limits.hello_timeout;
  limits.frame_timeout = config.limits.frame_timeout;
  limits.write_timeout = config.limits.write_timeout;
  limits.idle_timeout = config.limits.idle_timeout;
  limits.catch_up_bytes_per_second = config.catch_up_bytes_per_second;
  return limits;
}

}  // namespace mq::broker
