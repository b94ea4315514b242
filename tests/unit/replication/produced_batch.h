#pragma once

#include <string_view>
#include <vector>

#include "model/record_batch_builder.h"

namespace mq::testing {

/// A batch of `records` equal records, as a client sends it; of a producer that names itself when
/// `producer` is known.
inline std::vector<std::byte> produced_batch(std::string_view value, std::uint32_t records,
                                             const model::ProducerIdentity& producer,
                                             std::int32_t base_sequence) {
  model::RecordBatchBuilder builder(base::BufferPool::shared(), 1 << 20, 0);
  for (std::uint32_t i = 0; i < records; ++i) {
    model::RecordInput record;
    record.value = base::as_bytes(value);
    record.timestamp_ms = 1;
    static_cast<void>(builder.append(record));
  }
  if (producer.known()) builder.set_producer(producer, base_sequence);
  const auto batch = builder.finish();
  return {batch.bytes.begin(), batch.bytes.end()};
}

inline std::vector<std::byte> one_record_batch(std::string_view value) {
  return produced_batch(value, 1, {}, -1);
}

}  // namespace mq::testing
