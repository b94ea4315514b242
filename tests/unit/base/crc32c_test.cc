#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "base/hash.h"

namespace mq::base {
namespace {

// The examples of RFC 3720 appendix B.4.
TEST(Crc32c, PublishedVectors) {
  EXPECT_EQ(crc32c(as_bytes("123456789")), 0xE3069283u);
  std::array<std::byte, 32> block{};
  EXPECT_EQ(crc32c(block), 0x8A9136AAu);
  block.fill(std::byte{0xff});
  EXPECT_EQ(crc32c(block), 0x62A8AB43u);
  for (std::size_t i = 0; i < block.size(); ++i) block[i] = std::byte(i);
  EXPECT_EQ(crc32c(block), 0x46DD794Eu);
  EXPECT_EQ(crc32c({}), 0u);
}

TEST(Crc32c, PiecesGiveTheSumOfTheWhole) {
  std::vector<std::byte> bytes(5000);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte(i * 31 % 251);
  const auto whole = crc32c(bytes);
  for (std::size_t cut = 0; cut <= bytes.size(); cut += 61) {
    const auto first = crc32c(Bytes(bytes).first(cut));
    EXPECT_EQ(crc32c(Bytes(bytes).subspan(cut), first), whole) << cut;
  }
}

TEST(Crc32c, EveryBitFlipIsSeen) {
  std::string text(300, 'x');
  const auto right = crc32c(as_bytes(text));
  for (std::size_t bit = 0; bit < text.size() * 8; ++bit) {
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_NE(crc32c(as_bytes(text)), right);
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << (bit % 8)));
  }
}

TEST(Xxh3, KnownValueOfTheEmptyInput) { EXPECT_EQ(xxh3_64({}), 0x2D06800538D394C2ull); }

TEST(Bytes, LittleEndianAtAnyAlignment) {
  std::array<std::byte, 16> area{};
  for (std::size_t at = 0; at < 8; ++at) {
    store_le(area.data() + at, std::uint64_t{0x1122334455667788});
    EXPECT_EQ(area[at], std::byte{0x88});
    EXPECT_EQ(area[at + 7], std::byte{0x11});
    EXPECT_EQ(load_le<std::uint64_t>(area.data() + at), 0x1122334455667788u);
    store_le(area.data() + at, std::int32_t{-2});
    EXPECT_EQ(load_le<std::int32_t>(area.data() + at), -2);
  }
}

}  // namespace
}  // namespace mq::base
