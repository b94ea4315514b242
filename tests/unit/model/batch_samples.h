#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/buffer.h"
#include "base/crc32c.h"
#include "model/record_batch.h"
#include "model/record_batch_builder.h"
#include "model/record_reader.h"

namespace mq::model::testing {

/// A record that owns its bytes; what a reader gave back is compared in this form.
struct OwnedRecord {
  std::optional<std::string> key;
  std::optional<std::string> value;
  std::int64_t timestamp_ms = 0;
  std::optional<std::string> tag;
  std::vector<std::pair<std::string, std::optional<std::string>>> headers;
  friend bool operator==(const OwnedRecord&, const OwnedRecord&) = default;
};

inline std::optional<Bytes> borrow(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  return base::as_bytes(*text);
}

inline bool append(RecordBatchBuilder& builder, const OwnedRecord& record) {
  std::vector<RecordHeader> headers;
  for (const auto& [name, value] : record.headers) headers.push_back({name, borrow(value)});
  return builder.append({.key = borrow(record.key),
                         .value = borrow(record.value),
                         .timestamp_ms = record.timestamp_ms,
                         .tag = borrow(record.tag),
                         .headers = headers});
}

inline base::SharedBytes build(const std::vector<OwnedRecord>& records, Codec codec = Codec::none) {
  RecordBatchBuilder builder(base::BufferPool::shared(), batch_format::kBatchBytesMax, 0);
  for (const auto& record : records) {
    if (!append(builder, record)) return {};
  }
  return builder.finish(codec);
}

inline std::optional<std::string> owned(const std::optional<Bytes>& bytes) {
  if (!bytes) return std::nullopt;
  return std::string(base::as_text(*bytes));
}

inline OwnedRecord owned(const RecordView& view) {
  OwnedRecord record{owned(view.key), owned(view.value), view.timestamp_ms, owned(view.tag), {}};
  for (const auto& header : view.headers)
    record.headers.emplace_back(std::string(header.name), owned(header.value));
  return record;
}

/// Every record of a whole batch, or nothing when anything about it is wrong.
inline std::optional<std::vector<OwnedRecord>> read(Bytes batch) {
  const auto view = RecordBatchView::parse(batch);
  if (!view) return std::nullopt;
  const auto unpacked = decompress(*view, base::BufferPool::shared());
  if (!unpacked) return std::nullopt;
  RecordReader reader(*view, unpacked->bytes);
  std::vector<OwnedRecord> records;
  RecordView record;
  while (reader.next(record) == RecordStep::record) records.push_back(owned(record));
  if (reader.corrupt()) return std::nullopt;
  return records;
}

/// A few records of every shape, large and repetitive enough that both codecs pack them.
inline std::vector<OwnedRecord> sample_records() {
  const std::string text(300, 'a');
  return {{std::nullopt, text, 1'700'000'000'000, std::nullopt, {}},
          {"key", std::nullopt, 1'700'000'000'001, "red", {}},
          {"", "", 1'699'999'999'999, "", {{"h", "v"}, {"", std::nullopt}, {"e", ""}}},
          {std::string("\0\xff\x80", 3), text, 1'700'000'000'500, std::nullopt, {}}};
}

inline std::string copy(const base::SharedBytes& batch) {
  return std::string(base::as_text(batch.bytes));
}

/// Makes both checksums right again, for batches that are wrong in other ways.
inline void seal(std::string& batch) {
  auto* data = reinterpret_cast<std::byte*>(batch.data());
  const Bytes bytes(data, batch.size());
  base::store_le(data + batch_format::kBodyCrc,
                 base::crc32c(bytes.subspan(batch_format::kBodyCoverStart)));
  base::store_le(data + batch_format::kStampCrc,
                 base::crc32c(bytes.first(batch_format::kStampCrc)));
}

/// A batch around hand-made record bytes.
inline std::string wrap(std::string_view records, std::uint32_t record_count,
                        std::uint32_t last_offset_delta, Codec codec = Codec::none,
                        std::optional<std::uint32_t> raw_bytes = std::nullopt) {
  std::string batch = copy(build({{std::nullopt, "x", 1'000, std::nullopt, {}}})).substr(0, 96);
  batch += records;
  auto* data = reinterpret_cast<std::byte*>(batch.data());
  base::store_le(data + batch_format::kBatchBytes, static_cast<std::uint32_t>(batch.size()));
  base::store_le(data + batch_format::kCodec, static_cast<std::uint8_t>(codec));
  base::store_le(data + batch_format::kRecordCount, record_count);
  base::store_le(data + batch_format::kLastOffsetDelta, last_offset_delta);
  base::store_le(data + batch_format::kRawBytes,
                 raw_bytes.value_or(static_cast<std::uint32_t>(records.size())));
  seal(batch);
  return batch;
}

}  // namespace mq::model::testing
