#include "base/uuid.h"

#include <gtest/gtest.h>

#include <unordered_set>

namespace mq::base {
namespace {

TEST(Uuid, HexRoundTrip) {
  const Uuid id = Uuid::from_random(0x0123456789abcdef, 0xfedcba9876543210);
  EXPECT_EQ(id.hex().size(), 32u);
  EXPECT_EQ(Uuid::from_hex(id.hex()), id);
  EXPECT_EQ(Uuid::from_bytes(as_bytes(id.raw())), id);
  EXPECT_EQ(id.hex()[12], '4') << "version 4";
  EXPECT_NE(std::string("89ab").find(id.hex()[16]), std::string::npos) << "variant";
}

TEST(Uuid, OtherTextIsRefused) {
  const std::string good = Uuid::from_random(1, 2).hex();
  std::string upper = good;
  upper[0] = 'A';
  for (const char* bad :
       {"", "123", "0123456789abcdef0123456789abcde", "0123456789abcdef0123456789abcdef0",
        "gggggggggggggggggggggggggggggggg", "01234567-9abcdef0123456789abcdef"})
    EXPECT_EQ(Uuid::from_hex(bad), std::nullopt) << bad;
  EXPECT_EQ(Uuid::from_hex(upper), std::nullopt);
  EXPECT_EQ(Uuid::from_bytes(as_bytes("short")), std::nullopt);
}

TEST(Uuid, ZeroMeansNone) {
  EXPECT_TRUE(Uuid().is_zero());
  EXPECT_FALSE(Uuid::from_random(0, 0).is_zero());
}

TEST(Uuid, HashSeparates) {
  std::unordered_set<Uuid> ids;
  for (std::uint64_t i = 0; i < 1000; ++i) ids.insert(Uuid::from_random(i, i * 7919));
  EXPECT_EQ(ids.size(), 1000u);
}

}  // namespace
}  // namespace mq::base
