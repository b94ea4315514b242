#include "protocol/frame.h"

#include "base/crc32c.h"

namespace mq::protocol {
namespace {

constexpr std::size_t kCrcCover = 16;          // the head's bytes under header_crc
constexpr std::uint32_t kHeadBehindSize = 16;  // of the head, counted in frame_bytes

class FrameCategory : public boost::system::error_category {
 public:
  const char* name() const noexcept override { return "mq.frame"; }
  std::string message(int value) const override {
    switch (static_cast<FrameErrc>(value)) {
      case FrameErrc::unknown_flag:
        return "the frame has a flag that this version does not know";
      case FrameErrc::too_large:
        return "the frame is above the size limit";
      case FrameErrc::malformed:
        return "the frame's sizes contradict each other";
      case FrameErrc::header_too_large:
        return "the frame's header is above 1 MiB";
      case FrameErrc::bad_header_crc:
        return "the frame's checksum is wrong";
    }
    return "unknown error";
  }
};

void store_head(std::byte* to, const FrameHead& head) noexcept {
  base::store_le(to, head.frame_bytes);
  base::store_le(to + 4, head.api_key);
  base::store_le(to + 6, head.api_version);
  base::store_le(to + 7, head.flags);
  base::store_le(to + 8, head.correlation_id);
  base::store_le(to + 12, head.header_bytes);
  base::store_le(to + 16, head.header_crc);
}

std::uint32_t header_crc(base::Bytes head_bytes, base::Bytes header) noexcept {
  return base::crc32c(header, base::crc32c(head_bytes.first(kCrcCover)));
}

}  // namespace

const boost::system::error_category& frame_category() noexcept {
  static const FrameCategory category;
  return category;
}

boost::system::error_code make_error_code(FrameErrc code) noexcept {
  return {static_cast<int>(code), frame_category()};
}

FrameHead load_frame_head(base::Bytes bytes) noexcept {
  const std::byte* from = bytes.data();
  FrameHead head;
  head.frame_bytes = base::load_le<std::uint32_t>(from);
  head.api_key = base::load_le<std::uint16_t>(from + 4);
  head.api_version = base::load_le<std::uint8_t>(from + 6);
  head.flags = base::load_le<std::uint8_t>(from + 7);
  head.correlation_id = base::load_le<std::uint32_t>(from + 8);
  head.header_bytes = base::load_le<std::uint32_t>(from + 12);
  head.header_crc = base::load_le<std::uint32_t>(from + 16);
  return head;
}

base::Result<FrameHead> decode_frame_head(base::Bytes bytes, std::uint32_t frame_bytes_max) {
  const FrameHead head = load_frame_head(bytes);
  // Sizes first: what is no mq frame at all shows there, and says more than a stray flag.
  if (head.frame_bytes > frame_bytes_max) return FrameErrc::too_large;
  if (head.frame_bytes < kHeadBehindSize) return FrameErrc::malformed;
  if (head.header_bytes > head.frame_bytes - kHeadBehindSize) return FrameErrc::malformed;
  if ((head.flags & ~kFrameKnownFlags) != 0) return FrameErrc::unknown_flag;
  if (head.header_bytes > kHeaderBytesMax) return FrameErrc::header_too_large;
  return head;
}

bool header_crc_matches(base::Bytes head_bytes, base::Bytes header) noexcept {
  return header_crc(head_bytes, header) ==
         base::load_le<std::uint32_t>(head_bytes.data() + kCrcCover);
}

std::string encode_frame(FrameHead head, std::string_view header, std::uint32_t payload_bytes) {
  head.header_bytes = static_cast<std::uint32_t>(header.size());
  head.frame_bytes = kHeadBehindSize + head.header_bytes + payload_bytes;
  std::string frame(kFrameHeadBytes, '\0');
  frame.reserve(kFrameHeadBytes + header.size());
  auto* bytes = reinterpret_cast<std::byte*>(frame.data());
  store_head(bytes, head);
  head.header_crc = header_crc({bytes, kFrameHeadBytes}, base::as_bytes(header));
  base::store_le(bytes + kCrcCover, head.header_crc);
  frame += header;
  return frame;
}

}  // namespace mq::protocol
