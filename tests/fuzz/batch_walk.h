#pragma once

#include <string>

#include "base/buffer.h"
#include "base/crc32c.h"
#include "fuzz/fuzz_input.h"
#include "model/record_batch.h"
#include "model/record_reader.h"

namespace mq::fuzz {

inline void check_inside(const std::optional<base::Bytes>& field, base::Bytes records) {
  if (!field || field->empty()) return;
  MQ_CHECK(field->data() >= records.data());
  MQ_CHECK(field->data() + field->size() <= records.data() + records.size());
}

/// Reads every record and checks that nothing points outside.
inline void walk(const model::RecordBatchView& batch, base::Bytes records) {
  model::RecordReader reader(batch, records);
  model::RecordView record;
  std::uint32_t count = 0;
  model::Offset last = model::advance(batch.base_offset(), -1);
  while (reader.next(record) == model::RecordStep::record) {
    MQ_CHECK(record.offset > last && record.offset <= batch.last_offset());
    last = record.offset;
    ++count;
    check_inside(record.key, records);
    check_inside(record.value, records);
    check_inside(record.tag, records);
    std::size_t headers = 0;
    for (const auto& header : record.headers) {
      check_inside(base::as_bytes(header.name), records);
      check_inside(header.value, records);
      ++headers;
    }
    MQ_CHECK(headers == record.headers.size());
  }
  MQ_CHECK(reader.corrupt() || count == batch.record_count());
}

/// Makes both checksums hold if there is room for them, so that the fuzzer gets behind them.
inline void seal(std::string& batch) {
  if (batch.size() < model::batch_format::kStableBytes) return;
  auto* data = reinterpret_cast<std::byte*>(batch.data());
  const base::Bytes bytes(data, batch.size());
  base::store_le(data + model::batch_format::kBodyCrc,
                 base::crc32c(bytes.subspan(model::batch_format::kBodyCoverStart)));
  base::store_le(data + model::batch_format::kStampCrc,
                 base::crc32c(bytes.first(model::batch_format::kStampCrc)));
}

}  // namespace mq::fuzz
