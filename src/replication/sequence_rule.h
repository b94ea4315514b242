#pragma once

#include <optional>

#include "model/record_batch.h"
#include "replication/error.h"
#include "storage/producer_table.h"

namespace mq::replication {

/// What the sequence rule says of one batch of a named producer.
struct SequenceVerdict {
  Error refusal;  ///< unknown_producer, out_of_order_sequence, duplicate_sequence, producer_fenced
  std::optional<storage::ProducerBatch> repeat_of;  ///< in the log already, and this is it again
  [[nodiscard]] bool append() const noexcept { return !refusal && !repeat_of; }
};

/// The sequence rule of one producer in one partition (IDM-1). `known` is what its log remembers of
/// the producer, null for nothing; `batch` names its producer. Changes nothing.
///
/// - Nothing remembered: sequence 0 begins, anything else is refused: whether it is a repeat cannot
///   be told. (That a producer with a batch to repeat is not forgotten is the log's part.)
/// - A lower producer epoch is refused for good, a higher one begins at sequence 0.
/// - In the same epoch the next sequence is appended. One of the remembered batches again is a
///   repeat; one before them is refused as there already; one behind the next as a gap.
SequenceVerdict check_sequence(const storage::ProducerState* known,
                               const model::RecordBatchView& batch);

}  // namespace mq::replication
