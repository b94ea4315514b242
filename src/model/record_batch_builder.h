#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "base/buffer.h"
#include "base/bytes.h"
#include "model/compression.h"
#include "model/record.h"
#include "model/record_batch.h"
#include "model/record_batch_format.h"
#include "model/varint.h"

namespace mq::model {

/// Writes records one behind the other into one pooled buffer, the header's 96 bytes in front, so
/// that the finished batch is the payload of a frame without another copy. No allocation per
/// record. Not thread-safe; reusable after finish().
///
/// The buffer starts with room for `expected_bytes` and doubles up to `batch_bytes_max`; whoever
/// knows how large its batches become avoids the copies.
class RecordBatchBuilder {
 public:
  /// `batch_bytes_max` counts the header and is at most 16 MiB; what compression saves does not
  /// count towards it.
  RecordBatchBuilder(base::BufferPool& pool, std::uint32_t batch_bytes_max,
                     std::uint32_t expected_bytes);
  RecordBatchBuilder(base::BufferPool& pool, std::uint32_t batch_bytes_max)
      : RecordBatchBuilder(pool, batch_bytes_max, batch_bytes_max) {}

  /// Never less than what append() takes for this record, and at most 40 bytes more.
  [[nodiscard]] static std::size_t record_bytes_max(const RecordInput& record) noexcept;

  [[nodiscard]] bool would_fit(std::size_t record_bytes) const noexcept {
    return record_bytes <= limit_ - position_;
  }

  /// Appends one record; false, and nothing changed, when the batch would pass its limit.
  [[nodiscard]] bool append(const RecordInput& record);

  [[nodiscard]] bool empty() const noexcept { return record_count_ == 0; }
  [[nodiscard]] std::uint32_t record_count() const noexcept { return record_count_; }
  /// Of the batch so far, uncompressed, header included.
  [[nodiscard]] std::uint32_t batch_bytes() const noexcept {
    return static_cast<std::uint32_t>(position_);
  }

  /// Fills the header (offset, epoch and append time -1) and both checksums, packs the records if
  /// that makes them smaller (otherwise the codec is none), and starts anew. At least one record
  /// has been appended.
  [[nodiscard]] base::SharedBytes finish(Codec codec = Codec::none);

  /// Names the producer in the next finished batch; clear() and finish() forget it.
  void set_producer(const ProducerIdentity& producer, std::int32_t base_sequence) noexcept {
    producer_ = producer;
    base_sequence_ = base_sequence;
  }

  /// Drops what was appended.
  void clear() noexcept;

 private:
  void reserve(std::size_t bytes);
  void write_header(std::byte* header, std::size_t batch_bytes, std::size_t raw_bytes,
                    Codec codec) const noexcept;
  std::byte* write_headers(std::byte* to, std::span<const RecordHeader> headers) noexcept;

  base::BufferPool& pool_;
  std::size_t limit_;
  std::size_t expected_bytes_;
  base::Buffer buffer_;
  std::byte* data_ = nullptr;  // of buffer_
  std::size_t capacity_ = 0;   // of buffer_, never above limit_
  std::size_t position_ = batch_format::kHeaderBytes;
  std::uint32_t record_count_ = 0;
  std::int64_t base_timestamp_ms_ = 0;
  std::int64_t max_timestamp_ms_ = 0;
  std::uint64_t tag_set_ = batch_format::kTagSetNone;
  ProducerIdentity producer_;
  std::int32_t base_sequence_ = -1;
};

namespace detail {

/// "uvarint n, 0 = null, else n - 1 bytes".
[[nodiscard]] inline std::size_t field_bytes(const std::optional<base::Bytes>& field) noexcept {
  return field ? uvarint_bytes(field->size() + 1) + field->size() : 1;
}
inline std::byte* write_field(std::byte* to, const std::optional<base::Bytes>& field) noexcept {
  if (!field) {
    *to = std::byte{0};
    return to + 1;
  }
  to = write_uvarint(to, field->size() + 1);
  if (!field->empty()) std::memcpy(to, field->data(), field->size());
  return to + field->size();
}
[[nodiscard]] std::size_t headers_bytes(std::span<const RecordHeader> headers) noexcept;

}  // namespace detail

inline bool RecordBatchBuilder::append(const RecordInput& record) {
  if (record_count_ == 0) base_timestamp_ms_ = max_timestamp_ms_ = record.timestamp_ms;
  // Unsigned, so that any two timestamps have a difference; a reader adds it the same way.
  const std::uint64_t timestamp_delta =
      zigzag(static_cast<std::int64_t>(static_cast<std::uint64_t>(record.timestamp_ms) -
                                       static_cast<std::uint64_t>(base_timestamp_ms_)));
  const std::size_t body = 1 + uvarint_bytes(timestamp_delta) + uvarint_bytes(record_count_) +
                           detail::field_bytes(record.key) + detail::field_bytes(record.value) +
                           detail::field_bytes(record.tag) +
                           (record.headers.empty() ? 1 : detail::headers_bytes(record.headers));
  const std::size_t bytes = uvarint_bytes(body) + body;
  if (position_ + bytes > capacity_) [[unlikely]] {
    if (!would_fit(bytes)) return false;
    reserve(bytes);
  }
  std::byte* to = write_uvarint(data_ + position_, body);
  *to++ = std::byte{0};  // attributes
  to = write_uvarint(to, timestamp_delta);
  to = write_uvarint(to, record_count_);
  to = detail::write_field(to, record.key);
  to = detail::write_field(to, record.value);
  to = detail::write_field(to, record.tag);
  if (record.headers.empty()) {
    *to = std::byte{0};
  } else {
    write_headers(to, record.headers);
  }
  if (record.tag) tag_set_ |= tag_bits(*record.tag);
  if (record.timestamp_ms > max_timestamp_ms_) max_timestamp_ms_ = record.timestamp_ms;
  position_ += bytes;
  ++record_count_;
  return true;
}

}  // namespace mq::model
