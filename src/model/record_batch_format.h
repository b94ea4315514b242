#pragma once

#include <cstddef>
#include <cstdint>

/// The bytes of a record batch (FORMAT.md): one format in memory, on the wire and on disk.
namespace mq::model::batch_format {

/// Where each header field starts. All are little-endian and read by memcpy.
inline constexpr std::size_t kBaseOffset = 0;        // i64, stamped by the broker
inline constexpr std::size_t kBatchBytes = 8;        // u32, whole batch, header included
inline constexpr std::size_t kLeaderEpoch = 12;      // i32, stamped
inline constexpr std::size_t kAppendTimeMs = 16;     // i64, stamped
inline constexpr std::size_t kBodyCrc = 24;          // u32, of bytes 32 to the end
inline constexpr std::size_t kStampCrc = 28;         // u32, of bytes 0-27, stamped
inline constexpr std::size_t kVersion = 32;          // u8
inline constexpr std::size_t kHeaderWords = 33;      // u8, records start at 8 x this
inline constexpr std::size_t kCodec = 34;            // u8
inline constexpr std::size_t kReservedByte = 35;     // u8, zero
inline constexpr std::size_t kFlagsRequired = 36;    // u16, an unknown bit means refuse
inline constexpr std::size_t kFlagsOptional = 38;    // u16, an unknown bit is ignored
inline constexpr std::size_t kRecordCount = 40;      // u32
inline constexpr std::size_t kLastOffsetDelta = 44;  // u32
inline constexpr std::size_t kBaseTimestampMs = 48;  // i64
inline constexpr std::size_t kMaxTimestampMs = 56;   // i64
inline constexpr std::size_t kProducerId = 64;       // i64
inline constexpr std::size_t kProducerEpoch = 72;    // i32
inline constexpr std::size_t kBaseSequence = 76;     // i32
inline constexpr std::size_t kTagSet = 80;           // u64
inline constexpr std::size_t kRawBytes = 88;         // u32, records before compression
inline constexpr std::size_t kReservedWord = 92;     // u32, zero
inline constexpr std::size_t kHeaderBytes = 96;      // records of version 1 start here

/// Bytes 0-35 mean the same in every version, so no batch of any version is shorter.
inline constexpr std::size_t kStableBytes = 36;
/// What each checksum covers: the stamp crc [0, kStampCrc), the body crc [kBodyCoverStart, end).
inline constexpr std::size_t kBodyCoverStart = 32;

static_assert(kStampCrc == kBodyCrc + 4, "the stamp crc covers the body crc, which binds the two");
static_assert(kBodyCoverStart == kStampCrc + 4 && kVersion == kBodyCoverStart);
static_assert(kStableBytes == kReservedByte + 1);
static_assert(kReservedWord + 4 == kHeaderBytes && kHeaderBytes % 8 == 0);

inline constexpr std::uint8_t kVersion1 = 1;
inline constexpr std::uint8_t kHeaderWordsVersion1 = kHeaderBytes / 8;

/// flags_required. None is accepted until its feature exists.
inline constexpr std::uint16_t kFlagTransactional = 1;
inline constexpr std::uint16_t kFlagControl = 2;
inline constexpr std::uint16_t kFlagEncrypted = 4;
inline constexpr std::uint16_t kFlagDelayed = 8;
inline constexpr std::uint16_t kFlagsRequiredKnown = 0;

inline constexpr std::uint64_t kTagSetNone = 0;
/// All ones: the writer did not compute it; such a batch is never skipped.
inline constexpr std::uint64_t kTagSetUnknown = ~std::uint64_t{0};

/// No batch is larger, whatever a topic allows.
inline constexpr std::uint32_t kBatchBytesMax = std::uint32_t{16} << 20;
/// No batch holds more bytes of records before compression.
inline constexpr std::uint32_t kRawBytesMax = std::uint32_t{64} << 20;
/// The shortest record: its length and seven one-byte fields.
inline constexpr std::uint32_t kRecordBytesMin = 8;

}  // namespace mq::model::batch_format
