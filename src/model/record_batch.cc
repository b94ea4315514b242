#include "model/record_batch.h"

#include <limits>

#include "base/check.h"
#include "base/crc32c.h"

namespace mq::model {
namespace {

namespace format = batch_format;

/// LOG-3: the two checks cover every byte, and this one covers the other.
std::uint32_t crc_of_stamp(Bytes batch) noexcept {
  return base::crc32c(batch.first(format::kStampCrc));
}

/// The fields that say whether this version of mq can read the batch at all.
bool known_format(const RecordBatchView& batch) noexcept {
  const std::byte* data = batch.bytes().data();
  return batch.version() == format::kVersion1 &&
         static_cast<std::uint8_t>(batch.codec()) < kCodecCount &&
         data[format::kReservedByte] == std::byte{0} &&
         (batch.flags_required() & ~format::kFlagsRequiredKnown) == 0 &&
         base::load_le<std::uint32_t>(data + format::kReservedWord) == 0;
}

/// What every batch of version 1 keeps, so that the arithmetic of offsets cannot overflow and no
/// count claims more than the bytes can hold.
bool rules_hold(const RecordBatchView& batch) noexcept {
  if (batch.header_bytes() < format::kHeaderBytes || batch.header_bytes() > batch.batch_bytes())
    return false;
  const std::uint64_t packed_bytes = batch.batch_bytes() - batch.header_bytes();
  if (batch.raw_bytes() > format::kRawBytesMax) return false;
  if (batch.codec() == Codec::none && batch.raw_bytes() != packed_bytes) return false;
  if (std::uint64_t{batch.record_count()} * format::kRecordBytesMin > batch.raw_bytes())
    return false;
  if (batch.last_offset_delta() >
      static_cast<std::uint32_t>(std::numeric_limits<std::int32_t>::max()))
    return false;
  if (batch.record_count() > batch.last_offset_delta() + 1) return false;
  constexpr auto kOffsetMax = std::numeric_limits<std::int64_t>::max() -
                              std::int64_t{std::numeric_limits<std::int32_t>::max()} - 1;
  if (batch.base_offset().value() < -1 || batch.base_offset().value() > kOffsetMax) return false;
  if (batch.leader_epoch().value() < -1 || batch.append_time_ms() < -1) return false;
  if (batch.max_timestamp_ms() < batch.base_timestamp_ms()) return false;
  return batch.producer_id() >= -1 && batch.producer_epoch() >= -1 && batch.base_sequence() >= -1;
}

bool produced_rules_hold(const RecordBatchView& batch) noexcept {
  const bool named = batch.producer_id() >= 0;
  if ((batch.producer_epoch() >= 0) != named || (batch.base_sequence() >= 0) != named) return false;
  return batch.base_offset() == Offset() && batch.leader_epoch() == LeaderEpoch() &&
         batch.append_time_ms() == -1 && batch.record_count() >= 1 &&
         batch.record_count() == batch.last_offset_delta() + 1;
}

}  // namespace

Result<std::uint32_t> peek_batch_bytes(Bytes bytes) {
  if (bytes.size() < format::kLeaderEpoch) return ModelErrc::incomplete_batch;
  const auto batch_bytes = base::load_le<std::uint32_t>(bytes.data() + format::kBatchBytes);
  if (batch_bytes < format::kStableBytes || batch_bytes > format::kBatchBytesMax)
    return ModelErrc::corrupt_batch;
  return batch_bytes;
}

bool stamp_crc_holds(Bytes batch) noexcept {
  return crc_of_stamp(batch) == base::load_le<std::uint32_t>(batch.data() + format::kStampCrc);
}

bool body_crc_holds(Bytes batch) noexcept {
  return base::crc32c(batch.subspan(format::kBodyCoverStart)) ==
         base::load_le<std::uint32_t>(batch.data() + format::kBodyCrc);
}

Result<RecordBatchView> RecordBatchView::parse(Bytes bytes) {
  MQ_TRY(const RecordBatchView batch, parse_first(bytes));
  // Length and checksums agree with each other, so more bytes are the caller's mistake or a peer's.
  if (batch.bytes().size() != bytes.size()) return ModelErrc::invalid_batch;
  return batch;
}

Result<RecordBatchView> RecordBatchView::parse_first(Bytes bytes) {
  MQ_TRY(const std::uint32_t batch_bytes, peek_batch_bytes(bytes));
  if (bytes.size() < format::kStableBytes) return ModelErrc::incomplete_batch;
  if (!stamp_crc_holds(bytes)) return ModelErrc::corrupt_batch;
  if (bytes.size() < batch_bytes) return ModelErrc::incomplete_batch;
  const Bytes whole = bytes.first(batch_bytes);
  if (!body_crc_holds(whole)) return ModelErrc::corrupt_batch;
  if (static_cast<std::uint8_t>(whole[format::kVersion]) != format::kVersion1)
    return ModelErrc::unsupported_format;
  if (whole.size() < format::kHeaderBytes) return ModelErrc::invalid_batch;
  const RecordBatchView batch(whole);
  if (!known_format(batch)) return ModelErrc::unsupported_format;
  if (!rules_hold(batch)) return ModelErrc::invalid_batch;
  return batch;
}

Result<RecordBatchView> RecordBatchView::parse_header(Bytes bytes) {
  MQ_TRY(const std::uint32_t batch_bytes, peek_batch_bytes(bytes));
  if (bytes.size() < format::kStableBytes) return ModelErrc::incomplete_batch;
  if (!stamp_crc_holds(bytes)) return ModelErrc::corrupt_batch;
  if (static_cast<std::uint8_t>(bytes[format::kVersion]) != format::kVersion1)
    return ModelErrc::unsupported_format;
  if (batch_bytes < format::kHeaderBytes) return ModelErrc::invalid_batch;
  if (bytes.size() < format::kHeaderBytes) return ModelErrc::incomplete_batch;
  const RecordBatchView batch(bytes.first(std::min<std::size_t>(bytes.size(), batch_bytes)));
  if (!known_format(batch)) return ModelErrc::unsupported_format;
  if (!rules_hold(batch)) return ModelErrc::invalid_batch;
  return batch;
}

Result<RecordBatchView> parse_produced(Bytes bytes, std::uint32_t batch_bytes_max) {
  MQ_TRY(const std::uint32_t batch_bytes, peek_batch_bytes(bytes));
  if (batch_bytes > batch_bytes_max) return ModelErrc::too_large;
  MQ_TRY(const RecordBatchView batch, RecordBatchView::parse(bytes));
  if (!produced_rules_hold(batch)) return ModelErrc::invalid_batch;
  return batch;
}

void set_producer(MutableBytes batch, const ProducerIdentity& producer,
                  std::int32_t base_sequence) noexcept {
  std::byte* data = batch.data();
  base::store_le(data + format::kProducerId, producer.id);
  base::store_le(data + format::kProducerEpoch, producer.epoch);
  base::store_le(data + format::kBaseSequence, base_sequence);
  base::store_le(data + format::kBodyCrc,
                 base::crc32c(Bytes(batch).subspan(format::kBodyCoverStart)));
  base::store_le(data + format::kStampCrc, crc_of_stamp(batch));
}

void stamp(MutableBytes batch, Offset base_offset, LeaderEpoch leader_epoch,
           std::int64_t append_time_ms) noexcept {
  std::byte* data = batch.data();
  base::store_le(data + format::kBaseOffset, base_offset.value());
  base::store_le(data + format::kLeaderEpoch, leader_epoch.value());
  base::store_le(data + format::kAppendTimeMs, append_time_ms);
  base::store_le(data + format::kStampCrc, crc_of_stamp(batch));
}

}  // namespace mq::model
