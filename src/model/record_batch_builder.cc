#include "model/record_batch_builder.h"

#include <algorithm>

#include "base/check.h"
#include "base/crc32c.h"

namespace mq::model {
namespace {

namespace format = batch_format;

constexpr std::size_t kSmallestBuffer = 4096;

}  // namespace

namespace detail {

std::size_t headers_bytes(std::span<const RecordHeader> headers) noexcept {
  std::size_t bytes = uvarint_bytes(headers.size());
  for (const RecordHeader& header : headers)
    bytes += uvarint_bytes(header.name.size()) + header.name.size() + field_bytes(header.value);
  return bytes;
}

}  // namespace detail

RecordBatchBuilder::RecordBatchBuilder(base::BufferPool& pool, std::uint32_t batch_bytes_max,
                                       std::uint32_t expected_bytes)
    : pool_(pool),
      limit_(
          std::clamp<std::size_t>(batch_bytes_max, format::kHeaderBytes, format::kBatchBytesMax)),
      expected_bytes_(
          std::clamp<std::size_t>(expected_bytes, std::min(kSmallestBuffer, limit_), limit_)) {}

std::size_t RecordBatchBuilder::record_bytes_max(const RecordInput& record) noexcept {
  constexpr std::size_t kFixed = 1 + kVarintBytesMax + 5 + 5;  // attributes, time, offset, length
  return kFixed + detail::field_bytes(record.key) + detail::field_bytes(record.value) +
         detail::field_bytes(record.tag) + detail::headers_bytes(record.headers);
}

std::byte* RecordBatchBuilder::write_headers(std::byte* to,
                                             std::span<const RecordHeader> headers) noexcept {
  to = write_uvarint(to, headers.size());
  for (const RecordHeader& header : headers) {
    to = write_uvarint(to, header.name.size());
    to = std::copy_n(base::as_bytes(header.name).data(), header.name.size(), to);
    to = detail::write_field(to, header.value);
  }
  return to;
}

/// Room for `bytes` more; the caller has checked the limit.
void RecordBatchBuilder::reserve(std::size_t bytes) {
  const std::size_t wanted = std::max({position_ + bytes, expected_bytes_, capacity_ * 2});
  base::Buffer larger = pool_.take(std::min(wanted, limit_));
  if (buffer_) std::memcpy(larger.data(), buffer_.data(), position_);
  buffer_ = std::move(larger);
  data_ = buffer_.data();
  capacity_ = std::min(buffer_.capacity(), limit_);
}

base::SharedBytes RecordBatchBuilder::finish(Codec codec) {
  MQ_CHECK(record_count_ > 0, "a batch has at least one record");
  const std::size_t raw_bytes = position_ - format::kHeaderBytes;
  const base::Bytes raw(data_ + format::kHeaderBytes, raw_bytes);
  std::size_t batch_bytes = position_;
  base::Buffer packed;
  if (codec != Codec::none) {
    packed = pool_.take(position_);
    const base::MutableBytes room(packed.data() + format::kHeaderBytes, raw_bytes - 1);
    const std::size_t packed_bytes = compress(codec, raw, room);
    if (packed_bytes == 0) codec = Codec::none;
    if (packed_bytes != 0) batch_bytes = format::kHeaderBytes + packed_bytes;
  }
  base::Buffer batch = codec == Codec::none ? std::move(buffer_) : std::move(packed);
  write_header(batch.data(), batch_bytes, raw_bytes, codec);
  clear();
  return {batch, base::Bytes(batch.data(), batch_bytes)};
}

void RecordBatchBuilder::write_header(std::byte* header, std::size_t batch_bytes,
                                      std::size_t raw_bytes, Codec codec) const noexcept {
  std::memset(header, 0, format::kHeaderBytes);
  base::store_le(header + format::kBaseOffset, std::int64_t{-1});
  base::store_le(header + format::kBatchBytes, static_cast<std::uint32_t>(batch_bytes));
  base::store_le(header + format::kLeaderEpoch, std::int32_t{-1});
  base::store_le(header + format::kAppendTimeMs, std::int64_t{-1});
  base::store_le(header + format::kVersion, format::kVersion1);
  base::store_le(header + format::kHeaderWords, format::kHeaderWordsVersion1);
  base::store_le(header + format::kCodec, static_cast<std::uint8_t>(codec));
  base::store_le(header + format::kRecordCount, record_count_);
  base::store_le(header + format::kLastOffsetDelta, record_count_ - 1);
  base::store_le(header + format::kBaseTimestampMs, base_timestamp_ms_);
  base::store_le(header + format::kMaxTimestampMs, max_timestamp_ms_);
  base::store_le(header + format::kProducerId, producer_.id);
  base::store_le(header + format::kProducerEpoch, producer_.epoch);
  base::store_le(header + format::kBaseSequence, base_sequence_);
  base::store_le(header + format::kTagSet, tag_set_);
  base::store_le(header + format::kRawBytes, static_cast<std::uint32_t>(raw_bytes));
  const base::Bytes batch(header, batch_bytes);
  base::store_le(header + format::kBodyCrc, base::crc32c(batch.subspan(format::kBodyCoverStart)));
  base::store_le(header + format::kStampCrc, base::crc32c(batch.first(format::kStampCrc)));
}

void RecordBatchBuilder::clear() noexcept {
  buffer_ = base::Buffer();
  data_ = nullptr;
  capacity_ = 0;
  position_ = format::kHeaderBytes;
  record_count_ = 0;
  tag_set_ = format::kTagSetNone;
  producer_ = {};
  base_sequence_ = -1;
}

}  // namespace mq::model
