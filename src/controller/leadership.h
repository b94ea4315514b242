#pragma once

#include "controller/controller.h"
#include "controller/node_writer.h"

namespace mq::controller {

/// In a store that several processes share only the session that holds /ctl/leader changes
/// anything: the node is ephemeral, so it is there exactly as long as writes of its session can
/// take effect (MET-4). Waits until `deadline` for the session of an earlier process to end; then
/// the error is another_controller, and a log line says who it is.
asio::awaitable<Result<void>> claim_leadership(metadata::MetadataStore& store, NodeWriter& writer,
                                               const ControllerConfig& config,
                                               base::Runtime& runtime, base::TimePoint deadline);

/// After a lost session, and with the leadership: puts the broker's live node back under the epoch
/// that it has. broker_id_in_use: another process has registered under its id since.
asio::awaitable<Result<void>> register_again(metadata::MetadataStore& store, NodeWriter& writer,
                                             const ControllerConfig& config,
                                             model::BrokerEpoch epoch);

}  // namespace mq::controller
