// What each mistake in the configuration is answered with, word for word.
#include "unit/config/config_fixture.h"

namespace mq::config {
namespace {

class ConfigErrors : public mq::testing::ConfigFixture {
 protected:
  /// The minimal file with more behind it; its first line is line 6.
  std::string with(const std::string& more) { return errors(kMinimal + more); }
};

TEST_F(ConfigErrors, AllMistakesComeOutAtOnce) {
  EXPECT_EQ(errors(R"([broker]
id = "one"
metdata = "local"
workers = 0
[[storage.disk]]
path = "data"
[listener.clients]
bind = "127.0.0.1:99999"
advertised = "::1"
[topic.defaults]
retention.age = 14
segment.bytes = 67108864
durability = "maybe"
[limits]
memory = "1MiB"
idle_timeout = 30
[logg]
level = "info"
)"),
            R"(broker.toml:2:6: broker.id: expected a number from 0 to 2147483647, got "one"
broker.toml:3:1: broker.metdata: there is no such key; did you mean "metadata"?
broker.toml:4:11: broker.workers: expected a number from 1 to 256, got 0 (or "auto": by the number of cores)
broker.toml:6:8: storage.disk.path: expected an absolute path, such as "/var/lib/mq", got "data"
broker.toml:8:8: listener.clients.bind: port "99999" is not a number from 1 to 65535
broker.toml:9:14: listener.clients.advertised: write an IPv6 address in brackets: "[::1]:9500"
broker.toml:11:17: topic.defaults.retention.age: a time needs its unit; write "14s" or "14ms"
broker.toml:12:17: topic.defaults.segment.bytes: a size needs its unit; write "64MiB"
broker.toml:13:14: topic.defaults.durability: durability = "maybe": must be disk or memory
broker.toml:15:10: limits.memory: expected a size from 32MiB to 1TiB, got "1MiB"
broker.toml:16:16: limits.idle_timeout: a time needs its unit; write "30s" or "30ms"
broker.toml:17:2: logg: there is no such section; did you mean [log]?
broker.toml: broker.metadata: is missing in [broker]
)");
}

TEST_F(ConfigErrors, BooleansAreTakenWithAndWithoutQuotesAndNothingElseIs) {
  const std::string key = "[topic.defaults]\nunclean_election = ";
  EXPECT_EQ(with(key + "true\n"), "");
  EXPECT_EQ(with(key + "\"false\"\n"), "");
  const std::string refused = "broker.toml:7:20: topic.defaults.unclean_election: ";
  EXPECT_EQ(with(key + "1\n"), refused + "expected true or false, got 1\n");
  EXPECT_EQ(with(key + "\"yes\"\n"), refused + "expected true or false, got \"yes\"\n");
  EXPECT_EQ(with("[topic.defaults]\ndurability = true\n"),
            "broker.toml:7:14: topic.defaults.durability: expected text in quotes, got true\n");
}

TEST_F(ConfigErrors, TypingErrorNamesTheNearestKey) {
  EXPECT_EQ(with("[limits]\nconections = 5\n"),
            "broker.toml:7:1: limits.conections: there is no such key; did you mean "
            "\"connections\"?\n");
}

TEST_F(ConfigErrors, KeyInTheWrongSectionIsToldWhereItBelongs) {
  EXPECT_EQ(
      with("[limits]\nlevel = \"info\"\n"),
      "broker.toml:7:1: limits.level: there is no such key here; \"level\" belongs in [log]\n");
  EXPECT_EQ(errors("id = 1\n" + std::string(kMinimal)),
            "broker.toml:1:1: id: there is no such key here; \"id\" belongs in [broker]\n");
  EXPECT_EQ(with("[listener]\nbind = \"127.0.0.1:9500\"\n"),
            "broker.toml:7:1: listener.bind: there is no such key here; \"bind\" belongs in "
            "[listener.clients]\n");
}

TEST_F(ConfigErrors, KeyThatMeansNothingListsWhatThereIs) {
  EXPECT_EQ(with("[log]\ncolourful = true\n"),
            "broker.toml:7:1: log.colourful: there is no such key; [log] has level\n");
}

TEST_F(ConfigErrors, WhatThisReleaseDoesNotHaveIsRefusedByName) {
  EXPECT_EQ(
      errors("[broker]\nid = 1\nmetadata = \"zookeeper:/zk1:2181/mq\"\n"
             "[[storage.disk]]\npath = \"/data/b\"\n"
             "[[storage.disk]]\npath = \"/data/c\"\n"
             "[listener.clients]\ntls = { cert = \"/etc/mq/b.crt\" }\n"
             "[listener.internal]\nbind = \"10.0.0.1:9501\"\n"
             "[topic.defaults]\nreplicas = 3\nmin_isr = 2\n"
             "[metrics]\nbind = \"127.0.0.1:9501\"\n[console]\nwrite = true\n"),
      R"(broker.toml:3:12: broker.metadata: expected "local" or "zookeeper://zk1:2181,zk2:2181/mq", got "zookeeper:/zk1:2181/mq"
broker.toml:9:1: listener.clients.tls: this release has no TLS
broker.toml:10:11: listener.internal: this release has one listener, [listener.clients]
broker.toml:15:2: metrics: this release has no metrics over HTTP; mqctl status -v has counters
broker.toml:17:2: console: this release has no web console
)");
}

TEST_F(ConfigErrors, AStandaloneBrokerKeepsOneReplica) {
  EXPECT_EQ(with("[topic.defaults]\nreplicas = 3\nmin_isr = 2\n"),
            "broker.toml:7:12: topic.defaults.replicas: a standalone broker keeps one replica; "
            "expected 1, got 3\n"
            "broker.toml:8:11: topic.defaults.min_isr: a standalone broker keeps one replica; "
            "expected 1, got 2\n");
}

TEST_F(ConfigErrors, TwoDisksWithOnePathAreOneDisk) {
  EXPECT_EQ(errors("[broker]\nid = 1\nmetadata = \"local\"\n"
                   "[[storage.disk]]\npath = \"/data/b\"\n"
                   "[[storage.disk]]\npath = \"/data/c\"\n"
                   "[[storage.disk]]\npath = \"/data/b/\"\n"),
            "broker.toml:9:8: storage.disk.path: /data/b is there twice; each disk has a "
            "[[storage.disk]] of its own\n");
}

TEST_F(ConfigErrors, JournalIsElsewhereOrNotNamed) {
  const std::string broker = "[broker]\nid = 1\nmetadata = \"local\"\n";
  EXPECT_EQ(errors(broker + "[[storage.disk]]\npath = \"/data/b\"\njournal = \"/data/b/j\"\n"),
            "broker.toml:6:11: storage.disk.journal: /data/b/j lies in the data directory /data/b; "
            "leave the key out to have the journal there, or name a folder on another device\n");
  EXPECT_EQ(errors(broker + "[[storage.disk]]\npath = \"/data/b\"\njournal = \"j\"\n"),
            "broker.toml:6:11: storage.disk.journal: expected an absolute path, such as "
            "\"/ssd/mq-journal\", got \"j\"\n");
  EXPECT_EQ(errors(broker + "[[storage.disk]]\npath = \"/data/b\"\n"
                            "[[storage.disk]]\njournal = \"/ssd/j\"\n"),
            "broker.toml:7:11: storage.disk.journal: there is no path in this [[storage.disk]]\n");
}

TEST_F(ConfigErrors, DuplicateKeysAreNamed) {
  EXPECT_EQ(errors("[broker]\nid = 1\nid = 2\nmetadata = \"local\"\n[[storage.disk]]\n"
                   "path = \"/data/b\"\n"),
            "broker.toml:3:6: \"id\" is set twice\n");
  EXPECT_EQ(with("[topic.defaults]\nretention.age = \"1d\"\n\"retention.age\" = \"2d\"\n"),
            "broker.toml:8:1: topic.defaults.retention.age: is set twice, here and in line 7\n");
}

TEST_F(ConfigErrors, WrongBracketsAreNamed) {
  EXPECT_EQ(errors("[[broker]]\nid = 1\nmetadata = \"local\"\n[storage.disk]\npath = \"/d\"\n"),
            R"(broker.toml:1:3: broker: write [broker] with one bracket
broker.toml:4:10: storage.disk: write [[storage.disk]] with two brackets, one for each disk
)");
}

TEST_F(ConfigErrors, WrongTypesSayWhatTheyExpected) {
  EXPECT_EQ(with("[limits]\nconnections = \"10GB\"\nidle_timeout = true\nmemory = 1.5\n"
                 "[listener.clients]\nbind = 9500\n[log]\nlevel = 3\n"
                 "[topic.defaults]\nretention.bytes = [\"1GiB\"]\npartitions = \"12\"\n"),
            R"(broker.toml:7:15: limits.connections: expected a number from 1 to 1000000, got "10GB"
broker.toml:8:16: limits.idle_timeout: expected a time with its unit, such as "30s", got true
broker.toml:9:10: limits.memory: expected a size with its unit, such as "64MiB", got 1.5
broker.toml:11:8: listener.clients.bind: expected an address in quotes, got 9500
broker.toml:13:9: log.level: expected "debug", "info", "warning" or "error", got 3
broker.toml:15:19: topic.defaults.retention.bytes: expected a size with its unit, such as "64MiB", got a list
broker.toml:16:14: topic.defaults.partitions: expected a number from 1 to 10000 without quotes, got "12"
)");
}

TEST_F(ConfigErrors, NegativeAndOverflowingNumbersAreRefused) {
  EXPECT_EQ(errors("[broker]\nid = -1\nmetadata = \"local\"\nworkers = 257\n"
                   "[[storage.disk]]\npath = \"/data/b\"\n"
                   "[limits]\nmemory = \"99999999999999999999TiB\"\nidle_timeout = \"-5s\"\n"
                   "[topic.defaults]\npartitions = 10001\nsegment.bytes = \"-1MiB\"\n"),
            R"(broker.toml:2:6: broker.id: expected a number from 0 to 2147483647, got -1
broker.toml:4:11: broker.workers: expected a number from 1 to 256, got 257 (or "auto": by the number of cores)
broker.toml:8:10: limits.memory: expected a size with its unit, such as "64MiB", got "99999999999999999999TiB"
broker.toml:9:16: limits.idle_timeout: expected a time with its unit, such as "30s", got "-5s"
broker.toml:11:14: topic.defaults.partitions: expected a number from 1 to 10000, got 10001
broker.toml:12:17: topic.defaults.segment.bytes: segment.bytes = "-1MiB": give a size with its unit, such as 64MiB
)");
}

TEST_F(ConfigErrors, NumberTooLargeForTomlIsASyntaxErrorOfItsLine) {
  const auto text = errors(
      "[broker]\nid = 99999999999999999999\nmetadata = \"local\"\n"
      "[[storage.disk]]\npath = \"b\"\n");
  EXPECT_THAT(text, ::testing::StartsWith("broker.toml:2:"));
  EXPECT_THAT(text,
              ::testing::HasSubstr("broker.toml:5:8: storage.disk.path: expected an absolute"));
}

TEST_F(ConfigErrors, LineThatDoesNotParseHidesNoOtherMistake) {
  const auto text = errors(
      "[broker]\nid = 10GB\nmetadata = \"local\nworkers = 0\n"
      "[[storage.disk]]\npath = \"/data/b\"\n[log]\nlevel = \"loud\"\n");
  EXPECT_THAT(text, ::testing::HasSubstr("broker.toml:2:"));
  EXPECT_THAT(text, ::testing::HasSubstr("broker.toml:3:"));
  EXPECT_THAT(text, ::testing::HasSubstr("broker.toml:4:11: broker.workers: expected"));
  EXPECT_THAT(text, ::testing::HasSubstr("broker.toml:8:9: log.level: expected"));
  EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr("is missing")));
}

TEST_F(ConfigErrors, EmptyFileLacksWhatIsRequired) {
  EXPECT_EQ(errors(""),
            R"(broker.toml: broker.id: is missing in [broker]
broker.toml: broker.metadata: is missing in [broker]
broker.toml: storage.disk.path: is missing; say where the data goes: [[storage.disk]] path = "/var/lib/mq"
)");
}

TEST_F(ConfigErrors, UnreadableFilesAreNamed) {
  EXPECT_EQ(errors(load()), "broker.toml: there is no such file\n");
  EXPECT_EQ(errors(std::string((1 << 20) + 1, '#')),
            "broker.toml: the file is larger than 1 MiB\n");
  std::filesystem::remove(folder_ / "broker.toml");
  std::filesystem::create_directory(folder_ / "broker.toml");
  EXPECT_EQ(errors(load()), "broker.toml: the file cannot be read: input/output error\n");
}

TEST_F(ConfigErrors, BinaryFileIsRefusedWithoutTouchingTheTerminal) {
  const auto text = errors(std::string("\x00\x1b[31m\xff\xfe", 8));
  EXPECT_FALSE(text.empty());
  for (const char c : text)
    EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20) << static_cast<int>(c);
}

TEST_F(ConfigErrors, DropInsAreCheckedLikeTheFile) {
  write("broker.d/10.toml", "[limits]\nconections = 1\n");
  EXPECT_EQ(
      with("[log]\nlevel = \"loud\"\n"),
      R"(broker.toml:7:9: log.level: expected "debug", "info", "warning" or "error", got "loud"
broker.d/10.toml:2:1: limits.conections: there is no such key; did you mean "connections"?
)");
}

TEST_F(ConfigErrors, EnvironmentAndFlagsAreCheckedLikeTheFile) {
  sources_.environment = {{"MQ_BROKER__IDD", "4"}, {"MQ_LIMITS__MEMORY", "100"}};
  sources_.flags = {"log.level", "log.lvel=info", "broker.workers=many"};
  EXPECT_EQ(
      errors(kMinimal),
      R"(environment variable MQ_BROKER__IDD: broker.idd: there is no such key; did you mean "id"?
environment variable MQ_LIMITS__MEMORY: limits.memory: a size needs its unit; write "100B"
--set: log.level: expected --set key=value
--set: log.lvel: there is no such key; did you mean "level"?
--set: broker.workers: expected a number from 1 to 256, got many (or "auto": by the number of cores)
)");
}

TEST_F(ConfigErrors, ValueThatIsReplacedHasToBeGoodToo) {
  sources_.flags = {"log.level=info"};
  EXPECT_EQ(
      with("[log]\nlevel = \"loud\"\n"),
      "broker.toml:7:9: log.level: expected \"debug\", \"info\", \"warning\" or \"error\", got "
      "\"loud\"\n");
}

TEST_F(ConfigErrors, AdvertisedAddressesThatNobodyCanUseAreRefused) {
  const auto advertise = [&](const std::string& address) {
    return with("[listener.clients]\nadvertised = \"" + address + "\"\n");
  };
  const std::string place = "broker.toml:7:14: listener.clients.advertised: ";
  EXPECT_EQ(advertise("0.0.0.0:9500"),
            place +
                "clients cannot connect to 0.0.0.0; name this machine as they see it, such as "
                "\"hdd-01:9500\"\n");
  EXPECT_EQ(advertise("[::]:9500"),
            place +
                "clients cannot connect to ::; name this machine as they see it, such as "
                "\"hdd-01:9500\"\n");
  EXPECT_EQ(advertise(""), place + "the address is empty\n");
  EXPECT_EQ(advertise("fe80::1"),
            place + "write an IPv6 address in brackets: \"[fe80::1]:9500\"\n");
  EXPECT_EQ(advertise("::1:9500"),
            place + "write an IPv6 address in brackets: \"[::1:9500]:9500\"\n");
  EXPECT_EQ(advertise("hdd-01:x"), place + "port \"x\" is not a number from 1 to 65535\n");
  EXPECT_EQ(advertise("[::1"), place + "\"[::1\" has no closing bracket\n");
  EXPECT_EQ(advertise("hdd-01:9500"), "");
  EXPECT_EQ(advertise("[::1]:9500"), "");
}

TEST_F(ConfigErrors, WildcardBindNeedsAnAdvertisedAddress) {
  EXPECT_EQ(
      with("[listener.clients]\nbind = \"0.0.0.0:9500\"\n"),
      "broker.toml:7:8: listener.clients.advertised: is needed, because clients cannot connect "
      "to 0.0.0.0; name this machine as they see it, such as \"hdd-01:9500\"\n");
  EXPECT_EQ(with("[listener.clients]\nbind = \"[::]:9500\"\nadvertised = \"hdd-01\"\n"), "");
}

}  // namespace
}  // namespace mq::config
