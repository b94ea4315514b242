#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"

namespace mq::protocol {

/// What a client sends before its first frame. The server sends no preface.
inline constexpr std::string_view kPreface = "MQP1";
inline constexpr std::size_t kFrameHeadBytes = 20;
inline constexpr std::uint32_t kHeaderBytesMax = std::uint32_t{1} << 20;
inline constexpr std::uint32_t kFrameBytesBeforeHello = std::uint32_t{64} << 10;
inline constexpr std::uint32_t kBatchBytesHardMax = std::uint32_t{16} << 20;
/// A frame may be this much larger than the largest allowed batch.
inline constexpr std::uint32_t kFrameSlackBytes = std::uint32_t{7} << 20;

enum FrameFlags : std::uint8_t {
  kFrameResponse = 1,
  kFrameMoreFollows = 2,  ///< more frames of this answer follow
  kFrameNoAnswer = 4,     ///< no answer wanted: Produce with acks=none only
  kFramePush = 8,
  kFrameKnownFlags = 15,
};

enum class FrameErrc {
  unknown_flag = 1,  ///< close
  too_large,         ///< frame_bytes above the limit: framing is lost, close
  malformed,         ///< header_bytes does not fit into frame_bytes: framing is lost, close
  header_too_large,  ///< framing holds: answer and skip
  bad_header_crc,    ///< the head itself may be wrong: close
};
const boost::system::error_category& frame_category() noexcept;
boost::system::error_code make_error_code(FrameErrc code) noexcept;

/// The first 20 bytes of a frame, little-endian (PROTOCOL.md, Frame).
struct FrameHead {
  std::uint32_t frame_bytes = 0;  ///< bytes after this field: 16 + header + payload
  std::uint16_t api_key = 0;
  std::uint8_t api_version = 0;
  std::uint8_t flags = 0;
  std::uint32_t correlation_id = 0;
  std::uint32_t header_bytes = 0;
  std::uint32_t header_crc = 0;  ///< CRC32C of bytes 0-15 and the header

  [[nodiscard]] std::uint32_t payload_bytes() const noexcept {
    return frame_bytes - 16 - header_bytes;
  }
  [[nodiscard]] std::uint32_t body_bytes() const noexcept { return frame_bytes - 16; }
  friend bool operator==(const FrameHead&, const FrameHead&) = default;
};

/// The fields as they are, unchecked: for the answer to a head that decode_frame_head() refuses.
FrameHead load_frame_head(base::Bytes bytes) noexcept;
/// Reads and checks the head alone, before any memory is taken for the rest. `bytes` has at least
/// 20 bytes.
base::Result<FrameHead> decode_frame_head(base::Bytes bytes, std::uint32_t frame_bytes_max);
/// The CRC over bytes 0-15 of the head as received and the header.
bool header_crc_matches(base::Bytes head_bytes, base::Bytes header) noexcept;
/// Head and header as one string, ready to be sent before `payload_bytes` bytes of payload. Fills
/// frame_bytes, header_bytes and header_crc; the rest is taken from `head`.
std::string encode_frame(FrameHead head, std::string_view header, std::uint32_t payload_bytes);

/// What speaks on a connection whose first bytes are not the preface.
enum class ForeignProtocol { none_yet, mq, tls, http, kafka, unknown };
/// `first_bytes`: what has arrived, up to 16 bytes. none_yet: more bytes are needed to tell.
ForeignProtocol recognise(base::Bytes first_bytes) noexcept;
std::string_view foreign_protocol_name(ForeignProtocol protocol) noexcept;
/// What to send before closing: an HTTP response, a TLS alert; nothing where the other side would
/// not read it.
std::string foreign_protocol_answer(ForeignProtocol protocol);

}  // namespace mq::protocol

template <>
struct boost::system::is_error_code_enum<mq::protocol::FrameErrc> : std::true_type {};
