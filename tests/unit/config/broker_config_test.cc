#include "config/broker_config.h"

#include "unit/config/config_fixture.h"

namespace mq::config {
namespace {

using BrokerConfigTest = mq::testing::ConfigFixture;

TEST_F(BrokerConfigTest, MinimalFileGivesTheBuiltInValues) {
  const auto loaded = load(kMinimal);
  ASSERT_TRUE(loaded.ok()) << errors(loaded);
  const auto& config = loaded.config;
  EXPECT_EQ(config.id, model::BrokerId(1));
  EXPECT_EQ(config.metadata, "local");
  EXPECT_EQ(config.workers, 0u);
  EXPECT_THAT(config.disks, ::testing::ElementsAre("/data/b"));
  EXPECT_EQ(config.listener.bind.text(), "127.0.0.1:9500");
  EXPECT_EQ(config.listener.advertised.text(), "127.0.0.1:9500");
  EXPECT_EQ(config.topic_defaults, model::TopicSettings());
  EXPECT_EQ(config.default_partitions, 1);
  EXPECT_EQ(config.limits.idle_timeout, std::chrono::minutes(10));
  EXPECT_EQ(config.log_level, base::LogLevel::info);
  EXPECT_TRUE(loaded.warnings.empty());
}

TEST_F(BrokerConfigTest, EveryKeyIsTakenOver) {
  const auto loaded = load(R"([broker]
id = 7
metadata = "local"
workers = 3
[[storage.disk]]
path = "/data/b/"
[listener.clients]
bind = "10.0.4.11:9600"
advertised = "hdd-01:9700"
[topic.defaults]
partitions = 12
replicas = 1
min_isr = 1
durability = "memory"
retention.age = "3d"
retention.bytes = "10GiB"
segment.bytes = "64MiB"
segment.age = "1d"
batch.bytes = "2MiB"
unclean_election = true
[limits]
memory = "512MiB"
connections = 100
hello_timeout = "5s"
frame_timeout = "6s"
write_timeout = "7s"
idle_timeout = "8s"
[log]
level = "debug"
)");
  ASSERT_TRUE(loaded.ok()) << errors(loaded);
  const auto& config = loaded.config;
  EXPECT_EQ(config.id, model::BrokerId(7));
  EXPECT_EQ(config.workers, 3u);
  EXPECT_THAT(config.disks, ::testing::ElementsAre("/data/b"));
  EXPECT_EQ(config.listener.bind.text(), "10.0.4.11:9600");
  EXPECT_EQ(config.listener.advertised.text(), "hdd-01:9700");
  EXPECT_EQ(config.default_partitions, 12);
  EXPECT_EQ(config.topic_defaults.durability, model::Durability::memory);
  EXPECT_EQ(config.topic_defaults.retention_age, std::chrono::hours(72));
  EXPECT_EQ(config.topic_defaults.retention_bytes, std::uint64_t{10} << 30);
  EXPECT_EQ(config.topic_defaults.segment_bytes, std::uint64_t{64} << 20);
  EXPECT_EQ(config.topic_defaults.segment_age, std::chrono::hours(24));
  EXPECT_EQ(config.topic_defaults.batch_bytes, 2u << 20);
  EXPECT_TRUE(config.topic_defaults.unclean_election);
  EXPECT_EQ(config.limits.memory_bytes, std::uint64_t{512} << 20);
  EXPECT_EQ(config.limits.connections, 100u);
  EXPECT_EQ(config.limits.hello_timeout, std::chrono::seconds(5));
  EXPECT_EQ(config.limits.frame_timeout, std::chrono::seconds(6));
  EXPECT_EQ(config.limits.write_timeout, std::chrono::seconds(7));
  EXPECT_EQ(config.limits.idle_timeout, std::chrono::seconds(8));
  EXPECT_EQ(config.log_level, base::LogLevel::debug);
}

TEST_F(BrokerConfigTest, StrongerSourcesWinAndAreNamed) {
  write("broker.d/20-b.toml", "[limits]\nconnections = 20\nidle_timeout = \"20s\"\n");
  write("broker.d/10-a.toml", "[limits]\nconnections = 10\nmemory = \"64MiB\"\n");
  write("broker.d/ignored.txt", "not toml at all [");
  write("broker.d/.hidden.toml", "not toml at all [");
  sources_.environment = {{"MQ_LIMITS__IDLE_TIMEOUT", "30s"},
                          {"MQ_LOG__LEVEL", "warning"},
                          {"MQ_SIM_SECONDS", "5"},
                          {"MQCTL_BROKERS", "x"},
                          {"PATH", "/bin"}};
  sources_.flags = {"log.level=error", "broker.id=9"};
  const auto loaded = load(std::string(kMinimal) + "[limits]\nconnections = 5\n");
  ASSERT_TRUE(loaded.ok()) << errors(loaded);
  EXPECT_EQ(value(loaded, "limits.write_timeout"), "\"30s\"");
  EXPECT_EQ(origin(loaded, "limits.write_timeout"), "built-in");
  EXPECT_EQ(origin(loaded, "broker.metadata"), "broker.toml:3");
  EXPECT_EQ(value(loaded, "limits.memory"), "\"64MiB\"");
  EXPECT_EQ(origin(loaded, "limits.memory"), "broker.d/10-a.toml:3");
  EXPECT_EQ(value(loaded, "limits.connections"), "20");
  EXPECT_EQ(origin(loaded, "limits.connections"), "broker.d/20-b.toml:2");
  EXPECT_EQ(value(loaded, "limits.idle_timeout"), "\"30s\"");
  EXPECT_EQ(origin(loaded, "limits.idle_timeout"), "environment variable MQ_LIMITS__IDLE_TIMEOUT");
  EXPECT_EQ(value(loaded, "log.level"), "\"error\"");
  EXPECT_EQ(origin(loaded, "log.level"), "--set");
  EXPECT_EQ(loaded.config.id, model::BrokerId(9));
}

TEST_F(BrokerConfigTest, DottedKeysWorkFromEverySource) {
  sources_.environment = {{"MQ_TOPIC__DEFAULTS__SEGMENT__BYTES", "32MiB"}};
  sources_.flags = {"topic.defaults.batch.bytes=64KiB"};
  const auto loaded =
      load(std::string(kMinimal) +
           "[topic.defaults]\nretention = { age = \"2d\" }\n\"segment.age\" = \"3d\"\n");
  ASSERT_TRUE(loaded.ok()) << errors(loaded);
  EXPECT_EQ(loaded.config.topic_defaults.retention_age, std::chrono::hours(48));
  EXPECT_EQ(loaded.config.topic_defaults.segment_age, std::chrono::hours(72));
  EXPECT_EQ(loaded.config.topic_defaults.segment_bytes, std::uint64_t{32} << 20);
  EXPECT_EQ(loaded.config.topic_defaults.batch_bytes, 64u << 10);
}

TEST_F(BrokerConfigTest, ListIsReplacedByAStrongerSource) {
  sources_.flags = {"storage.disk.path=/elsewhere"};
  const auto loaded = load(kMinimal);
  ASSERT_TRUE(loaded.ok()) << errors(loaded);
  EXPECT_THAT(loaded.config.disks, ::testing::ElementsAre("/elsewhere"));
  EXPECT_EQ(origin(loaded, "storage.disk.path"), "--set");
}

TEST_F(BrokerConfigTest, JournalGoesWithTheDiskOfItsTable) {
  const auto loaded = load(
      "[broker]\nid = 1\nmetadata = \"local\"\n[[storage.disk]]\npath = \"/data/a\"\n"
      "[[storage.disk]]\njournal = \"/ssd/journal/\"\npath = \"/data/b\"\n");
  ASSERT_TRUE(loaded.ok()) << errors(loaded);
  EXPECT_THAT(loaded.config.disks, ::testing::ElementsAre("/data/a", "/data/b"));
  EXPECT_THAT(loaded.config.journals, ::testing::ElementsAre("", "/ssd/journal"));
  EXPECT_EQ(value(loaded, "storage.disk.journal"), R"("", "/ssd/journal")");
  EXPECT_TRUE(load(kMinimal).config.journals.empty());
  sources_.flags = {"storage.disk.path=/elsewhere"};
  EXPECT_TRUE(load(std::string(kMinimal) + "journal = \"/ssd/j\"\n").config.journals.empty());
  sources_.flags = {"storage.disk.journal=/ssd/j", "storage.disk.path=/elsewhere"};
  EXPECT_THAT(load(kMinimal).config.journals, ::testing::ElementsAre("/ssd/j"));
}

TEST_F(BrokerConfigTest, WindowsLineEndsAndAByteOrderMarkAreFine) {
  std::string text;
  for (const char* at = kMinimal; *at; ++at) text += *at == '\n' ? "\r\n" : std::string(1, *at);
  EXPECT_TRUE(load(text).ok()) << errors(text);
  EXPECT_TRUE(load("\xef\xbb\xbf" + text).ok());
}

TEST_F(BrokerConfigTest, AdvertisedIsTheBoundAddressUnlessGiven) {
  const auto port = load(std::string(kMinimal) + "[listener.clients]\nbind = \"[::1]:9600\"\n");
  ASSERT_TRUE(port.ok()) << errors(port);
  EXPECT_EQ(port.config.listener.advertised.text(), "[::1]:9600");
  const auto name = load(std::string(kMinimal) +
                         "[listener.clients]\nadvertised = \"hdd-01\"\nbind = \"10.0.0.1:9600\"\n");
  ASSERT_TRUE(name.ok()) << errors(name);
  EXPECT_EQ(name.config.listener.advertised.text(), "hdd-01:9600");
  const auto any = load(std::string(kMinimal) + "[listener.clients]\nbind = \"127.0.0.1:0\"\n");
  ASSERT_TRUE(any.ok()) << errors(any);
  EXPECT_EQ(any.config.listener.bind.port, 0);
  EXPECT_EQ(any.config.listener.advertised.port, 0);
}

TEST_F(BrokerConfigTest, OpenListenerIsAllowedWithAWarning) {
  const auto loaded =
      load(std::string(kMinimal) +
           "[listener.clients]\nbind = \"0.0.0.0:9500\"\nadvertised = \"hdd-01\"\n");
  ASSERT_TRUE(loaded.ok()) << errors(loaded);
  EXPECT_THAT(loaded.warnings,
              ::testing::ElementsAre("the listener 0.0.0.0:9500 can be reached from other machines "
                                     "and asks for no authentication"));
  const auto loopback =
      load(std::string(kMinimal) +
           "[listener.clients]\nbind = \"10.0.0.1:9500\"\nadvertised = \"localhost\"\n");
  EXPECT_EQ(loopback.warnings.size(), 2u);
}

TEST_F(BrokerConfigTest, EffectiveConfigurationListsEveryKeyWithItsOrigin) {
  sources_.environment = {{"MQ_LIMITS__CONNECTIONS", "77"}};
  sources_.flags = {"log.level=debug"};
  auto loaded = load(kMinimal);
  ASSERT_TRUE(loaded.ok());
  for (auto& setting : loaded.settings) setting.origin = origin(loaded, setting.key);
  EXPECT_EQ(render_effective_config(loaded.settings),
            R"(broker.id = 1                                   # broker.toml:2
broker.metadata = "local"                       # broker.toml:3
broker.workers = "auto"                         # built-in
broker.rack = ""                                # built-in
storage.disk.path = "/data/b"                   # broker.toml:5
storage.disk.journal = ""                       # built-in
storage.dirty_max = "1GiB"                      # built-in
storage.scrub_rate = "5MiB/s"                   # built-in
replication.catch_up_rate = 0                   # built-in
replication.leader_balance_after = "1m"         # built-in
replication.leader_balance_limit = 10           # built-in
listener.clients.bind = "127.0.0.1:9500"        # built-in
listener.clients.advertised = "127.0.0.1:9500"  # built-in
topic.defaults.partitions = 1                   # built-in
topic.defaults.replicas = "auto"                # built-in
topic.defaults.min_isr = "auto"                 # built-in
topic.defaults.durability = "disk"              # built-in
topic.defaults.retention.age = "2w"             # built-in
topic.defaults.retention.bytes = "unlimited"    # built-in
topic.defaults.segment.bytes = "128MiB"         # built-in
topic.defaults.segment.age = "1w"               # built-in
topic.defaults.batch.bytes = "1MiB"             # built-in
topic.defaults.unclean_election = false         # built-in
limits.memory = "256MiB"                        # built-in
limits.connections = 77                         # environment variable MQ_LIMITS__CONNECTIONS
limits.hello_timeout = "10s"                    # built-in
limits.frame_timeout = "30s"                    # built-in
limits.write_timeout = "30s"                    # built-in
limits.idle_timeout = "10m"                     # built-in
log.level = "debug"                             # --set
)");
}

TEST_F(BrokerConfigTest, ReplicasOfNewTopicsAreNumbersInACluster) {
  const std::string cluster =
      "[broker]\nid = 1\nmetadata = \"zookeeper://zk1:2181/mq\"\n[[storage.disk]]\npath = "
      "\"/data/b\"\n";
  const auto of = [&](const std::string& lines) {
    return load(cluster + "[topic.defaults]\n" + lines);
  };
  const auto given = of("replicas = 3\nmin_isr = 2\n");
  ASSERT_TRUE(given.ok());
  EXPECT_EQ(given.config.default_replicas, 3);
  EXPECT_EQ(given.config.default_min_isr, 2u);
  const auto automatic = of("replicas = \"auto\"\nmin_isr = \"auto\"\n");
  ASSERT_TRUE(automatic.ok());
  EXPECT_EQ(automatic.config.default_replicas, 0);
  EXPECT_EQ(automatic.config.default_min_isr, 0u);
  EXPECT_FALSE(of("replicas = 8\n").ok());
  EXPECT_FALSE(of("replicas = 0\n").ok());
  EXPECT_FALSE(of("replicas = 2\nmin_isr = 3\n").ok());
  EXPECT_TRUE(of("min_isr = 3\n").ok());
}

TEST_F(BrokerConfigTest, ScrubRateIsBytesPerSecondOrNone) {
  const auto rate = [&](const std::string& text) {
    return load(std::string(kMinimal) + "[storage]\nscrub_rate = " + text + "\n");
  };
  EXPECT_EQ(load(kMinimal).config.scrub_bytes_per_second, std::uint64_t{5} << 20);
  EXPECT_EQ(rate("\"64KiB/s\"").config.scrub_bytes_per_second, std::uint64_t{64} << 10);
  EXPECT_EQ(rate("\"100MB/s\"").config.scrub_bytes_per_second, std::uint64_t{100'000'000});
  for (const auto* none : {"0", "\"0\""}) {
    const auto loaded = rate(none);
    ASSERT_TRUE(loaded.ok()) << errors(loaded);
    EXPECT_EQ(loaded.config.scrub_bytes_per_second, 0u);
    EXPECT_EQ(value(loaded, "storage.scrub_rate"), "0");
  }
  for (const auto* bad : {"5", "\"5MiB\"", "\"1KiB/s\"", "\"/s\"", "\"fast\"", "true", "-1"}) {
    EXPECT_THAT(errors(rate(bad)), ::testing::HasSubstr("storage.scrub_rate: expected a rate"))
        << bad;
  }
}

/// What is shown can be written into a file again.
TEST_F(BrokerConfigTest, ShownValuesAreReadBack) {
  const auto first = load(std::string(kMinimal) + "[topic.defaults]\nretention.age = \"90s\"\n");
  ASSERT_TRUE(first.ok());
  ConfigSources sources;
  std::string text = "[[storage.disk]]\npath = \"/data/b\"\n";
  for (const auto& setting : first.settings) {
    if (!setting.key.starts_with("storage.disk."))
      text = setting.key + " = " + setting.value + "\n" + text;
  }
  const auto second = load(text);
  ASSERT_TRUE(second.ok()) << errors(second);
  for (const auto& setting : first.settings) EXPECT_EQ(value(second, setting.key), setting.value);
}

}  // namespace
}  // namespace mq::config
