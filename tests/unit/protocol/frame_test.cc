#include "protocol/frame.h"

#include <gtest/gtest.h>

namespace mq::protocol {
namespace {

constexpr std::uint32_t kLimit = 8 << 20;

FrameHead sample_head() {
  FrameHead head;
  head.api_key = 4;
  head.api_version = 0;
  head.flags = kFrameNoAnswer;
  head.correlation_id = 0xaabbccdd;
  return head;
}

std::string sample_frame(std::uint32_t payload_bytes = 100) {
  return encode_frame(sample_head(), "the header", payload_bytes);
}

base::Error error_of(const std::string& frame, std::uint32_t limit = kLimit) {
  const auto head = decode_frame_head(base::as_bytes(frame), limit);
  return head ? base::Error() : head.error();
}

template <class T>
std::string with(std::size_t at, T value) {
  std::string frame = sample_frame();
  base::store_le(reinterpret_cast<std::byte*>(frame.data()) + at, value);
  return frame;
}

TEST(Frame, HeadComesBack) {
  const std::string frame = sample_frame();
  const auto head = decode_frame_head(base::as_bytes(frame), kLimit);
  ASSERT_TRUE(head);
  EXPECT_EQ(head->frame_bytes, 16u + 10u + 100u);
  EXPECT_EQ(head->api_key, 4u);
  EXPECT_EQ(head->flags, kFrameNoAnswer);
  EXPECT_EQ(head->correlation_id, 0xaabbccddu);
  EXPECT_EQ(head->header_bytes, 10u);
  EXPECT_EQ(head->payload_bytes(), 100u);
  EXPECT_EQ(head->body_bytes(), 110u);
  EXPECT_EQ(frame.substr(20), "the header");
}

TEST(Frame, EveryBitFlipInHeadAndHeaderIsSeen) {
  std::string frame = sample_frame();
  for (std::size_t i = 0; i < frame.size(); ++i) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      frame[i] = static_cast<char>(frame[i] ^ (1 << bit));
      const base::Bytes bytes = base::as_bytes(frame);
      const bool accepted = decode_frame_head(bytes, kLimit).has_value() &&
                            header_crc_matches(bytes.first(20), bytes.subspan(20));
      EXPECT_FALSE(accepted) << i << " " << bit;
      frame[i] = static_cast<char>(frame[i] ^ (1 << bit));
    }
  }
}

TEST(Frame, SizesAreCheckedAgainstTheLimit) {
  // PRO-1
  EXPECT_FALSE(error_of(sample_frame(), 126));
  EXPECT_EQ(error_of(sample_frame(), 125), FrameErrc::too_large);
  EXPECT_EQ(error_of(with(0, std::uint32_t{0x7fffffff})), FrameErrc::too_large);
  EXPECT_EQ(error_of(with(0, ~std::uint32_t{0})), FrameErrc::too_large);
}

TEST(Frame, SizesThatContradictEachOtherAreMalformed) {
  EXPECT_EQ(error_of(with(0, std::uint32_t{0})), FrameErrc::malformed);
  EXPECT_EQ(error_of(with(0, std::uint32_t{15})), FrameErrc::malformed);
  EXPECT_EQ(error_of(with(0, std::uint32_t{25})), FrameErrc::malformed);
  EXPECT_FALSE(error_of(with(0, std::uint32_t{26})));
  EXPECT_EQ(error_of(with(12, std::uint32_t{111})), FrameErrc::malformed);
  EXPECT_EQ(error_of(with(12, ~std::uint32_t{0})), FrameErrc::malformed);
}

TEST(Frame, LargeHeaderKeepsTheFraming) {
  std::string frame = with(0, std::uint32_t{3 << 20});
  base::store_le(reinterpret_cast<std::byte*>(frame.data()) + 12, kHeaderBytesMax + 1);
  EXPECT_EQ(error_of(frame), FrameErrc::header_too_large);
  EXPECT_EQ(load_frame_head(base::as_bytes(frame)).correlation_id, 0xaabbccddu);
  base::store_le(reinterpret_cast<std::byte*>(frame.data()) + 12, kHeaderBytesMax);
  EXPECT_FALSE(error_of(frame));
}

TEST(Frame, UnknownFlagIsRefused) {
  for (const unsigned bit : {4u, 5u, 6u, 7u})
    EXPECT_EQ(error_of(with(7, static_cast<std::uint8_t>(1 << bit))), FrameErrc::unknown_flag);
  for (const unsigned bit : {0u, 1u, 2u, 3u})
    EXPECT_FALSE(error_of(with(7, static_cast<std::uint8_t>(1 << bit))));
}

}  // namespace
}  // namespace mq::protocol
