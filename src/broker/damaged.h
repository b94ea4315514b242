#pragma once

#include <optional>
#include <string>

#include "broker/worker.h"

namespace mq::broker {

/// Another one that is known to have all of it, wherever it is now; nothing: there is none.
[[nodiscard]] std::optional<model::BrokerId> complete_elsewhere(
    const metadata::PartitionAssignment& assignment, model::BrokerId self);

/// What a client is told that wants what is damaged in the log that leads here, `text` saying what
/// and where. As long as another replica has it, or may have it, the client tries again: the
/// cluster is about to have that one lead. Else the error is final, and the text names the way out.
/// `wanted`: what the client needs begins there; -1: all of the log. On the partition's worker.
protocol::Status damaged_status(Worker& worker, const model::PartitionId& partition,
                                model::Offset wanted, std::string text);

/// Why a partition led here does not do what was asked; of one whose log is damaged as
/// damaged_status() says. On the partition's worker.
protocol::Status refusal_of(Worker& worker, const model::PartitionId& partition,
                            const base::Error& error);

}  // namespace mq::broker
