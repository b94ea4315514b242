#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "model/compression.h"
#include "model/error.h"
#include "model/ids.h"
#include "model/record_batch_format.h"

namespace mq::model {

using base::Bytes;
using base::MutableBytes;

/// Who sent a batch, for telling its repeats: an id that the cluster gave out once and an epoch
/// that rises whenever that producer begins its sequences anew.
struct ProducerIdentity {
  std::int64_t id = -1;  ///< -1: a producer that does not name itself
  std::int32_t epoch = -1;
  [[nodiscard]] bool known() const noexcept { return id >= 0; }
  friend bool operator==(const ProducerIdentity&, const ProducerIdentity&) = default;
};

/// Sequences count a producer's records in one partition and go on at 0 behind 2^31 - 1.
[[nodiscard]] constexpr std::int32_t advance_sequence(std::int32_t sequence,
                                                      std::uint32_t by) noexcept {
  return static_cast<std::int32_t>((static_cast<std::uint32_t>(sequence) + by) & 0x7fffffffU);
}

/// A validated, read-only look at one record batch (FORMAT.md). Owns nothing: the bytes outlive it.
///
/// Made only by the parse functions, so that no accessor reads outside the bytes. A view made by
/// parse() or parse_first() covers the whole batch and both of its checksums hold.
class RecordBatchView {
 public:
  /// Nothing: size 0, no accessor may be called.
  RecordBatchView() = default;

  /// `bytes` is exactly one batch. One pass over the body for its checksum.
  /// Errors: incomplete_batch, corrupt_batch, unsupported_format, invalid_batch.
  static Result<RecordBatchView> parse(Bytes bytes);
  /// The batch at the start of `bytes`, which may go on behind it. Errors as parse().
  static Result<RecordBatchView> parse_first(Bytes bytes);
  /// The header alone, from the batch's first 96 or more bytes: the stamp crc is checked, the body
  /// is not and may be missing. Enough to walk a log by offset; records() may not be called. Fields
  /// behind byte 31 are unchecked: an error about them (unsupported_format, invalid_batch) may be
  /// damage, which only parse_first() can tell.
  static Result<RecordBatchView> parse_header(Bytes bytes);

  [[nodiscard]] bool empty() const noexcept { return bytes_.empty(); }
  /// The bytes looked at: the whole batch, but for parse_header().
  [[nodiscard]] Bytes bytes() const noexcept { return bytes_; }
  /// The (compressed) records behind the header.
  [[nodiscard]] Bytes records() const noexcept { return bytes_.subspan(header_bytes()); }

  [[nodiscard]] Offset base_offset() const noexcept {
    return Offset(load<std::int64_t>(batch_format::kBaseOffset));
  }
  /// Inclusive.
  [[nodiscard]] Offset last_offset() const noexcept {
    return advance(base_offset(), last_offset_delta());
  }
  /// Exclusive: the base of the batch after this one.
  [[nodiscard]] Offset end_offset() const noexcept {
    return advance(base_offset(), std::int64_t{last_offset_delta()} + 1);
  }
  [[nodiscard]] std::uint32_t batch_bytes() const noexcept {
    return load<std::uint32_t>(batch_format::kBatchBytes);
  }
  [[nodiscard]] LeaderEpoch leader_epoch() const noexcept {
    return LeaderEpoch(load<std::int32_t>(batch_format::kLeaderEpoch));
  }
  [[nodiscard]] std::int64_t append_time_ms() const noexcept {
    return load<std::int64_t>(batch_format::kAppendTimeMs);
  }
  [[nodiscard]] std::uint32_t body_crc() const noexcept {
    return load<std::uint32_t>(batch_format::kBodyCrc);
  }
  [[nodiscard]] std::uint32_t stamp_crc() const noexcept {
    return load<std::uint32_t>(batch_format::kStampCrc);
  }
  [[nodiscard]] std::uint8_t version() const noexcept {
    return load<std::uint8_t>(batch_format::kVersion);
  }
  [[nodiscard]] std::size_t header_bytes() const noexcept {
    return std::size_t{8} * load<std::uint8_t>(batch_format::kHeaderWords);
  }
  [[nodiscard]] Codec codec() const noexcept {
    return static_cast<Codec>(load<std::uint8_t>(batch_format::kCodec));
  }
  [[nodiscard]] std::uint16_t flags_required() const noexcept {
    return load<std::uint16_t>(batch_format::kFlagsRequired);
  }
  [[nodiscard]] std::uint16_t flags_optional() const noexcept {
    return load<std::uint16_t>(batch_format::kFlagsOptional);
  }
  [[nodiscard]] std::uint32_t record_count() const noexcept {
    return load<std::uint32_t>(batch_format::kRecordCount);
  }
  [[nodiscard]] std::uint32_t last_offset_delta() const noexcept {
    return load<std::uint32_t>(batch_format::kLastOffsetDelta);
  }
  [[nodiscard]] std::int64_t base_timestamp_ms() const noexcept {
    return load<std::int64_t>(batch_format::kBaseTimestampMs);
  }
  [[nodiscard]] std::int64_t max_timestamp_ms() const noexcept {
    return load<std::int64_t>(batch_format::kMaxTimestampMs);
  }
  [[nodiscard]] std::int64_t producer_id() const noexcept {
    return load<std::int64_t>(batch_format::kProducerId);
  }
  [[nodiscard]] std::int32_t producer_epoch() const noexcept {
    return load<std::int32_t>(batch_format::kProducerEpoch);
  }
  [[nodiscard]] std::int32_t base_sequence() const noexcept {
    return load<std::int32_t>(batch_format::kBaseSequence);
  }
  [[nodiscard]] ProducerIdentity producer() const noexcept {
    return {producer_id(), producer_epoch()};
  }
  /// Inclusive; only of a batch that names its producer.
  [[nodiscard]] std::int32_t last_sequence() const noexcept {
    return advance_sequence(base_sequence(), last_offset_delta());
  }
  [[nodiscard]] std::uint64_t tag_set() const noexcept {
    return load<std::uint64_t>(batch_format::kTagSet);
  }
  [[nodiscard]] std::uint32_t raw_bytes() const noexcept {
    return load<std::uint32_t>(batch_format::kRawBytes);
  }

 private:
  explicit RecordBatchView(Bytes bytes) noexcept : bytes_(bytes) {}
  template <class T>
  [[nodiscard]] T load(std::size_t at) const noexcept {
    return base::load_le<T>(bytes_.data() + at);
  }

  Bytes bytes_;
};

/// The length of the batch that starts at `bytes`, read without trusting anything else.
/// Errors: incomplete_batch (the length itself is not there yet), corrupt_batch (no batch can have
/// this length; zeros are such a length).
Result<std::uint32_t> peek_batch_bytes(Bytes bytes);

/// One batch as a client sent it: parse() and the rules of produced batches (no offset, epoch or
/// append time yet; record_count = last_offset_delta + 1 >= 1; producer id, producer epoch and base
/// sequence all given or all absent). Errors: those of parse(), and too_large above
/// `batch_bytes_max`, found before the body is read.
Result<RecordBatchView> parse_produced(Bytes bytes, std::uint32_t batch_bytes_max);

/// Names the batch's producer and its first record's sequence in a batch that was not sent yet, or
/// is sent again under another name; both checksums are made anew.
void set_producer(MutableBytes batch, const ProducerIdentity& producer,
                  std::int32_t base_sequence) noexcept;

/// The broker's only change to a batch: bytes 0-7, 12-23 and 28-31 in place. `batch` has passed
/// parse_produced(). The body is not read again.
void stamp(MutableBytes batch, Offset base_offset, LeaderEpoch leader_epoch,
           std::int64_t append_time_ms) noexcept;

/// The two checks by themselves, for whoever looks for damage (offline tools, recovery). `batch` is
/// at least 36 bytes long; body_crc_holds() needs all of it.
[[nodiscard]] bool stamp_crc_holds(Bytes batch) noexcept;
[[nodiscard]] bool body_crc_holds(Bytes batch) noexcept;

}  // namespace mq::model
