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

protocol::Status without_lease(const Core& core) {
  auto why = core.membership->trouble();
  if (why.empty())
    why = "the metadata store has not confirmed for some time that this broker is the controller";
  return core.status(protocol::WireError::metadata_unavailable, std::move(why));
}

}  // namespace

std::optional<protocol::Status> refuse_change(const Core& core) {
  if (!core.membership->controller()) return core.membership->not_controller();
  if (!core.membership->has_lease(core.home->now())) return without_lease(core);
  if (core.partitions_recovering == 0 || core.stopping) return std::nullopt;
  return core.status(protocol::WireError::partition_recovering,
                     "topics are not changed before every log has been recovered");
}

std::optional<protocol::Status> refuse_as_outdated(const Core& core,
                                                   const protocol::Status& status) {
  const bool from_memory = status.error() == protocol::WireError::unknown_topic ||
                           status.error() == protocol::WireError::topic_exists;
  if (!from_memory || core.membership->has_lease(core.home->now())) return std::nullopt;
  return without_lease(core);
}

asio::awaitable<protocol::ResponseEnvelope> envelope_of_change(Core& core) {
  const std::uint64_t newest = co_await run_on(*core.home, newest_version(core));
  auto envelope = core.envelope();
  envelope.metadata_version = std::max(envelope.metadata_version, newest);
  co_return envelope;
}

}  // namespace mq::broker
