#pragma once

#include <optional>
#include <string>
#include <utility>

#include "broker/hop.h"
#include "broker/membership.h"
#include "protocol/topics.h"

namespace mq::broker {

/// Why this broker makes no change of topics now; nothing: it can. On the home runtime.
std::optional<protocol::Status> refuse_change(const Core& core);
/// A refusal that the controller gave from what it knows, when it may have been replaced before it
/// gave it: what it knows may be of the past. On the home runtime.
std::optional<protocol::Status> refuse_as_outdated(const Core& core,
                                                   const protocol::Status& status);

/// On the home runtime.
template <class Change>
asio::awaitable<protocol::TopicResult> change_at_controller(const Core& core, std::string name,
                                                            Change change) {
  protocol::TopicResult result;
  if (auto refusal = refuse_change(core)) {
    result.name = std::move(name);
    result.status = *std::move(refusal);
    co_return result;
  }
  result = co_await change(*core.membership->controller());
  if (auto refusal = refuse_as_outdated(core, result.status)) result.status = *std::move(refusal);
  co_return result;
}

/// Has the controller make a change of the topic `name`; NOT_CONTROLLER when it is not in this
/// process. `change` is given the controller, on the home runtime, and returns the awaitable of one
/// of its members.
template <class Change>
asio::awaitable<protocol::TopicResult> change_topic(Core& core, std::string name, Change change) {
  return run_on(*core.home, change_at_controller(core, std::move(name), std::move(change)));
}

/// For the answer to a change: names an image that shows it, which this broker may have only in a
/// moment. Whoever asked can wait for that one.
asio::awaitable<protocol::ResponseEnvelope> envelope_of_change(Core& core);

}  // namespace mq::broker
