#include "replication/sequence_rule.h"

#include "base/mutants.h"

namespace mq::replication {
namespace {

constexpr std::uint32_t kSequences = 0x80000000U;  // 0 to 2^31 - 1

/// From `from` on to `to`, around the end of the sequences.
std::uint32_t distance(std::int32_t from, std::int32_t to) noexcept {
  return (static_cast<std::uint32_t>(to) - static_cast<std::uint32_t>(from)) & (kSequences - 1);
}

Error starts_anew(const model::RecordBatchView& batch, ReplicationErrc otherwise) {
  return batch.base_sequence() == 0 ? Error() : make_error_code(otherwise);
}

/// One of its newest batches, byte for byte but for the broker's stamp.
bool is_repeat(const storage::ProducerBatch& known, const model::RecordBatchView& batch) {
  return known.base_sequence == batch.base_sequence() &&
         known.last_offset_delta == batch.last_offset_delta() && known.body_crc == batch.body_crc();
}

/// A batch that neither follows the newest one nor is one of those remembered.
ReplicationErrc out_of_place(const storage::ProducerState& known,
                             const model::RecordBatchView& batch) {
  const std::uint32_t ahead = distance(known.next_sequence(), batch.base_sequence());
  if (ahead < kSequences / 2) return ReplicationErrc::out_of_order_sequence;
  for (const auto& one : known.batches()) {
    // The same sequences with other records: the client uses a number twice.
    if (one.base_sequence == batch.base_sequence()) return ReplicationErrc::out_of_order_sequence;
  }
  const bool wholly_before = std::uint64_t{ahead} + batch.last_offset_delta() < kSequences;
  return wholly_before ? ReplicationErrc::duplicate_sequence
                       : ReplicationErrc::out_of_order_sequence;
}

}  // namespace

SequenceVerdict check_sequence(const storage::ProducerState* known,
                               const model::RecordBatchView& batch) {
  SequenceVerdict verdict;
  if (known == nullptr) {
    verdict.refusal = starts_anew(batch, ReplicationErrc::unknown_producer);
    return verdict;
  }
  const auto& producer = known->producer();
  if (batch.producer_epoch() < producer.epoch) {
    verdict.refusal = ReplicationErrc::producer_fenced;
    return verdict;
  }
  if (batch.producer_epoch() > producer.epoch) {
    verdict.refusal = starts_anew(batch, ReplicationErrc::out_of_order_sequence);
    return verdict;
  }
  if (batch.base_sequence() == known->next_sequence()) return verdict;
  for (const auto& one : known->batches()) {
    if (!is_repeat(one, batch)) continue;
    if (MQ_MUTANT("duplicate_answered_out_of_order")) {
      verdict.refusal = ReplicationErrc::out_of_order_sequence;
    } else {
      verdict.repeat_of = one;
    }
    return verdict;
  }
  verdict.refusal = out_of_place(*known, batch);
  return verdict;
}

}  // namespace mq::replication
