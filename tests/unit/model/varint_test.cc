#include "model/varint.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <vector>

namespace mq::model {
namespace {

std::vector<std::byte> bytes_of(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

bool reads(const std::vector<std::byte>& bytes, std::uint64_t& value) {
  const std::byte* end = bytes.data() + bytes.size();
  const std::byte* behind = read_uvarint(bytes.data(), end, value);
  return behind != nullptr && behind == end;
}

TEST(Varint, EveryLengthComesBack) {
  for (unsigned bits = 0; bits <= 64; ++bits) {
    const std::uint64_t top = bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
    for (const std::uint64_t value : {top, top + 1, top / 2}) {
      std::array<std::byte, kVarintBytesMax> buffer;
      std::byte* end = write_uvarint(buffer.data(), value);
      EXPECT_EQ(static_cast<std::size_t>(end - buffer.data()), uvarint_bytes(value));
      std::uint64_t back = 0;
      EXPECT_EQ(read_uvarint(buffer.data(), end, back), end);
      EXPECT_EQ(back, value);
    }
  }
}

TEST(Varint, CutShortIsRefused) {
  std::uint64_t value = 0;
  EXPECT_FALSE(reads({}, value));
  EXPECT_FALSE(reads(bytes_of({0x80}), value));
  EXPECT_FALSE(reads(bytes_of({0xff, 0xff}), value));
}

TEST(Varint, LongerThanNeededIsRefused) {
  std::uint64_t value = 0;
  EXPECT_FALSE(reads(bytes_of({0x80, 0x00}), value));
  EXPECT_FALSE(reads(bytes_of({0xff, 0x80, 0x00}), value));
}

TEST(Varint, Above64BitsIsRefused) {
  std::uint64_t value = 0;
  auto largest = bytes_of({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01});
  EXPECT_TRUE(reads(largest, value));
  EXPECT_EQ(value, ~std::uint64_t{0});
  largest.back() = std::byte{0x02};
  EXPECT_FALSE(reads(largest, value));
  largest.back() = std::byte{0x81};
  largest.push_back(std::byte{0x01});
  EXPECT_FALSE(reads(largest, value));
}

TEST(Varint, ZigzagKeepsTheSign) {
  using Limits = std::numeric_limits<std::int64_t>;
  for (const std::int64_t value :
       {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1}, Limits::min(), Limits::max()})
    EXPECT_EQ(unzigzag(zigzag(value)), value);
  EXPECT_EQ(zigzag(-1), 1u);
  EXPECT_EQ(zigzag(1), 2u);
}

}  // namespace
}  // namespace mq::model
