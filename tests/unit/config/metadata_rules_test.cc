#include "config/metadata_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mq::config {
namespace {

std::string shown(std::string_view text) {
  const auto place = parse_metadata(text);
  if (!place.zookeeper) return place.error;
  std::string servers;
  for (const auto& server : place.zookeeper->servers) servers += server.text() + " ";
  return servers + place.zookeeper->chroot;
}

TEST(MetadataRules, LocalHasNoServers) {
  const auto place = parse_metadata("local");
  ASSERT_TRUE(place.zookeeper);
  EXPECT_TRUE(place.zookeeper->servers.empty());
}

TEST(MetadataRules, ServersAndPathAreTakenApart) {
  EXPECT_EQ(shown("zookeeper://zk1:2182,zk2,[::1]:2183/mq/prod"),
            "zk1:2182 zk2:2181 [::1]:2183 /mq/prod");
  EXPECT_EQ(shown("zookeeper://10.0.0.1"), "10.0.0.1:2181 ");
  EXPECT_EQ(shown("zookeeper://zk1/"), "zk1:2181 ");
}

TEST(MetadataRules, MistakesAreNamed) {
  using ::testing::HasSubstr;
  EXPECT_THAT(shown("zookeper://zk1/mq"), HasSubstr("got \"zookeper://zk1/mq\""));
  EXPECT_THAT(shown("zk1:2181"), HasSubstr("expected \"local\" or \"zookeeper://"));
  EXPECT_THAT(shown("zookeepers://zk1:2281/mq"), HasSubstr("no TLS towards ZooKeeper"));
  EXPECT_THAT(shown("zookeeper+tls://zk1:2281/mq"), HasSubstr("no TLS towards ZooKeeper"));
  EXPECT_THAT(shown("zookeeper://me:secret@zk1/mq"), HasSubstr("does not authenticate"));
  EXPECT_THAT(shown("zookeeper:///mq"), HasSubstr("a server is missing"));
  EXPECT_THAT(shown("zookeeper://"), HasSubstr("a server is missing"));
  EXPECT_THAT(shown("zookeeper://zk1,,zk2/mq"), HasSubstr("a server is missing"));
  EXPECT_THAT(shown("zookeeper://zk1:0/mq"), HasSubstr("server \"zk1:0\""));
  EXPECT_THAT(shown("zookeeper://zk1:99999/mq"), HasSubstr("server \"zk1:99999\""));
  EXPECT_THAT(shown("zookeeper://zk1,zk1:2181/mq"), HasSubstr("zk1:2181 is named twice"));
  EXPECT_THAT(shown("zookeeper://zk1/mq/"), HasSubstr("ends with \"/\""));
  EXPECT_THAT(shown("zookeeper://zk1//mq"), HasSubstr("an empty part"));
  EXPECT_THAT(shown("zookeeper://zk1/a/../b"), HasSubstr("a part \"..\""));
  EXPECT_THAT(shown("zookeeper://zk1/zookeeper"), HasSubstr("ZooKeeper's own"));
  EXPECT_THAT(shown("zookeeper://zk1/m q"), HasSubstr("no visible ASCII"));
  EXPECT_THAT(shown("zookeeper://zk1/" + std::string(300, 'x')), HasSubstr("longer than"));
}

}  // namespace
}  // namespace mq::config
