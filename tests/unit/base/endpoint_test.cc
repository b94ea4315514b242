#include <gtest/gtest.h>

#include "base/network.h"

namespace mq::base {
namespace {

struct Good {
  const char* text;
  const char* host;
  std::uint16_t port;
  const char* printed;
};

TEST(Endpoint, ValidForms) {
  const Good cases[] = {
      {"127.0.0.1:9500", "127.0.0.1", 9500, "127.0.0.1:9500"},
      {"broker-1.example.org", "broker-1.example.org", 9999, "broker-1.example.org:9999"},
      {"  name:1 ", "name", 1, "name:1"},
      {"[::1]:80", "::1", 80, "[::1]:80"},
      {"[::1]", "::1", 9999, "[::1]:9999"},
      {"::1", "::1", 9999, "[::1]:9999"},
      {"[fe80::1%eth0]:65535", "fe80::1%eth0", 65535, "[fe80::1%eth0]:65535"},
      {"::ffff:10.0.0.1", "::ffff:10.0.0.1", 9999, "[::ffff:10.0.0.1]:9999"},
  };
  for (const auto& c : cases) {
    const auto parsed = parse_endpoint(c.text, 9999);
    ASSERT_TRUE(parsed.endpoint) << c.text << ": " << parsed.error;
    EXPECT_EQ(parsed.endpoint->host, c.host) << c.text;
    EXPECT_EQ(parsed.endpoint->port, c.port) << c.text;
    EXPECT_EQ(parsed.endpoint->text(), c.printed) << c.text;
    // What is printed can be pasted back.
    EXPECT_EQ(parse_endpoint(parsed.endpoint->text(), 1).endpoint, parsed.endpoint);
  }
}

TEST(Endpoint, BadFormsNameTheWrongPart) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "empty"},
      {"   ", "empty"},
      {"host:", "\"\""},
      {"host:0", "\"0\""},
      {"host:65536", "\"65536\""},
      {"host:-1", "\"-1\""},
      {"host:80x", "\"80x\""},
      {"ho st:80", "\"ho st\""},
      {":80", "\"\""},
      {"[::1:80", "bracket"},
      {"[::1]x", "\"x\""},
      {"[host]:80", "\"host\""},
      {"x:y:z", "\"x:y:z\""},
      {"1:2:3", "\"1:2:3\""},
      {"[1:2]:80", "\"1:2\""},
      {"http://x", "//x"},
      {"[::1]:", "\"\""},
  };
  for (const auto& [text, part] : cases) {
    const auto parsed = parse_endpoint(text, 9999);
    EXPECT_FALSE(parsed.endpoint) << text;
    EXPECT_NE(parsed.error.find(part), std::string::npos) << text << " -> " << parsed.error;
  }
}

}  // namespace
}  // namespace mq::base
