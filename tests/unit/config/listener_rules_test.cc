#include "config/listener_rules.h"

#include <gtest/gtest.h>

namespace mq::config {
namespace {

TEST(ListenerRules, BindMayAskForAnyFreePort) {
  EXPECT_EQ(parse_bind("127.0.0.1:0").endpoint, (base::Endpoint{"127.0.0.1", 0}));
  EXPECT_EQ(parse_bind("[::1]:0").endpoint, (base::Endpoint{"::1", 0}));
  EXPECT_EQ(parse_bind(" 10.0.0.1:80 ").endpoint, (base::Endpoint{"10.0.0.1", 80}));
  EXPECT_EQ(parse_bind("::0").endpoint, (base::Endpoint{"::0", kDefaultPort}));
  EXPECT_EQ(parse_bind("host").endpoint, (base::Endpoint{"host", kDefaultPort}));
  EXPECT_FALSE(parse_bind("a b:0").endpoint);
  EXPECT_FALSE(parse_bind("").endpoint);
  EXPECT_FALSE(parse_bind("1:2:3").endpoint);
  EXPECT_FALSE(parse_bind("[1:2]:9500").endpoint);
  EXPECT_EQ(parse_bind("fe80::1%eth0").endpoint, (base::Endpoint{"fe80::1%eth0", kDefaultPort}));
}

TEST(ListenerRules, WildcardsAreKnownInEverySpelling) {
  for (const auto* host : {"0.0.0.0", "0", "::", "0:0:0:0:0:0:0:0", "::0", "00.0.0.0"})
    EXPECT_TRUE(is_wildcard(host)) << host;
  for (const auto* host : {"10.0.0.0", "::1", "127.0.0.1", "hdd-01", "0x"})
    EXPECT_FALSE(is_wildcard(host)) << host;
}

TEST(ListenerRules, LoopbackNeedsNoWarning) {
  EXPECT_TRUE(listener_warnings({{"127.0.0.1", 1}, {"127.0.0.1", 1}}).empty());
  EXPECT_TRUE(listener_warnings({{"::1", 1}, {"::1", 1}}).empty());
  EXPECT_EQ(listener_warnings({{"10.0.0.1", 1}, {"hdd-01", 1}}).size(), 1u);
  EXPECT_EQ(listener_warnings({{"::", 1}, {"localhost", 1}}).size(), 2u);
}

}  // namespace
}  // namespace mq::config
