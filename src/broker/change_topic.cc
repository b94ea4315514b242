#include "broker/change_topic.h"

#include <algorithm>

namespace mq::broker {
namespace {

/// Of the controller's newest image; 0 when it is not in this process any more. On the home
/// runtime.
asio::awaitable<std::uint64_t> newest_version(const Core& core) {
  const auto* controller = core.membership->controller();
  const auto image = controller == nullptr ? nullptr : controller->image();
  co_return image ? image->version() : 0;
}

}  // namespace

std::optional<protocol::Status> refuse_change(const Core& core) {
  if (!core.membership->controller()) return core.membership->not_controller();
  if (core.partitions_recovering == 0 || core.stopping) return std::nullopt;
  return core.status(protocol::WireError::partition_recovering,
                     "topics are not changed before every log has been recovered");
}

asio::awaitable<protocol::ResponseEnvelope> envelope_of_change(Core& core) {
  const std::uint64_t newest = co_await run_on(*core.home, newest_version(core));
  auto envelope = core.envelope();
  envelope.metadata_version = std::max(envelope.metadata_version, newest);
  co_return envelope;
}

}  // namespace mq::broker
