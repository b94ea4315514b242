#include "base/result.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>

namespace mq::base {
namespace {

Result<std::unique_ptr<int>> make(bool good) {
  if (!good) return make_error_code(BaseErrc::not_found);
  auto value = std::make_unique<int>(7);
  return value;
}

Result<int> twice(bool good) {
  MQ_TRY(const auto value, make(good));
  return *value * 2;
}

Result<void> both(bool first, bool second) {
  MQ_TRY_VOID(twice(first));
  MQ_TRY_VOID(twice(second));
  return {};
}

TEST(Result, TryUnwrapsOrReturns) {
  EXPECT_EQ(*twice(true), 14);
  EXPECT_EQ(twice(false).error(), BaseErrc::not_found);
  EXPECT_TRUE(both(true, true));
  EXPECT_EQ(both(true, false).error(), BaseErrc::not_found);
}

TEST(Result, EveryBaseErrorHasAText) {
  for (int code = 1; code <= static_cast<int>(BaseErrc::not_permitted); ++code) {
    const auto text = base_category().message(code);
    EXPECT_FALSE(text.empty()) << code;
    EXPECT_NE(text, base_category().message(0)) << code;
  }
}

TEST(Result, ErrnoMapsToTheNearest) {
  EXPECT_EQ(error_from_errno(ENOSPC), BaseErrc::no_space);
  EXPECT_EQ(error_from_errno(EDQUOT), BaseErrc::no_space);
  EXPECT_EQ(error_from_errno(ENOENT), BaseErrc::not_found);
  EXPECT_EQ(error_from_errno(EEXIST), BaseErrc::already_exists);
  EXPECT_EQ(error_from_errno(EAGAIN), BaseErrc::would_block);
  EXPECT_EQ(error_from_errno(EIO), BaseErrc::io_failed);
  EXPECT_EQ(error_from_errno(ECONNRESET), BaseErrc::connection_lost);
  EXPECT_EQ(error_from_errno(ECONNREFUSED), BaseErrc::connection_refused);
  EXPECT_EQ(error_from_errno(EADDRINUSE), BaseErrc::address_in_use);
  EXPECT_EQ(error_from_errno(EADDRNOTAVAIL), BaseErrc::not_found);
}

}  // namespace
}  // namespace mq::base
