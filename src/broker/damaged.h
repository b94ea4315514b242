#pragma once

#include <string>
#include <vector>

#include "broker/worker.h"

namespace mq::broker {

/// The others that are known to have all of it, wherever they are now, those of the ISR first.
[[nodiscard]] std::vector<model::IsrMember> complete_elsewhere(
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
