#include "model/topic_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mq::model {
namespace {

using ::testing::HasSubstr;

TEST(TopicSettings, TextOfEverySettingReadsBack) {
  TopicSettings settings;
  settings.durability = Durability::memory;
  settings.retention_bytes = std::uint64_t{10} << 30;
  TopicSettings copy;
  for (const auto& name : topic_setting_names())
    EXPECT_FALSE(set_topic_setting(copy, name, topic_setting_text(settings, name))) << name;
  EXPECT_EQ(copy, settings);
}

TEST(TopicSettings, GivenAreThoseThatAreNotBuiltIn) {
  TopicSettings settings;
  EXPECT_TRUE(given_topic_settings(settings).empty());
  settings.retention_age = std::chrono::hours(1);
  settings.unclean_election = true;
  const auto given = given_topic_settings(settings);
  EXPECT_THAT(given, ::testing::ElementsAre(::testing::Pair("retention.age", "1h"),
                                            ::testing::Pair("unclean_election", "true")));
  TopicSettings copy;
  EXPECT_TRUE(apply_topic_settings(copy, given).empty());
  EXPECT_EQ(copy, settings);
}

TEST(TopicSettings, UncleanElectionIsTrueOrFalse) {
  TopicSettings settings;
  EXPECT_EQ(topic_setting_text(settings, "unclean_election"), "false");
  EXPECT_FALSE(set_topic_setting(settings, "unclean_election", "true"));
  EXPECT_EQ(topic_setting_text(settings, "unclean_election"), "true");
  EXPECT_TRUE(set_topic_setting(settings, "unclean_election", "yes"));
  EXPECT_TRUE(set_topic_setting(settings, "unclean_election", ""));
  EXPECT_TRUE(settings.unclean_election);
  EXPECT_FALSE(set_topic_setting(settings, "unclean_election", "false"));
  EXPECT_EQ(settings, TopicSettings());
}

TEST(TopicSettings, WordsForNoLimitReadBack) {
  TopicSettings settings;
  EXPECT_FALSE(set_topic_setting(settings, "retention.age", "forever"));
  EXPECT_FALSE(set_topic_setting(settings, "retention.bytes", "unlimited"));
  EXPECT_EQ(topic_setting_text(settings, "retention.age"), "forever");
  EXPECT_EQ(topic_setting_text(settings, "retention.bytes"), "unlimited");
}

TEST(TopicSettings, MinIsrIsANumberOrFollowsFromTheReplicas) {
  TopicSettings settings;
  EXPECT_EQ(topic_setting_text(settings, "min_isr"), "auto");
  EXPECT_FALSE(set_topic_setting(settings, "min_isr", "2"));
  EXPECT_EQ(settings.min_isr, 2u);
  EXPECT_EQ(topic_setting_text(settings, "min_isr"), "2");
  EXPECT_FALSE(set_topic_setting(settings, "min_isr", "auto"));
  EXPECT_EQ(settings, TopicSettings());
}

TEST(TopicSettings, UnknownNameGetsTheNearest) {
  TopicSettings settings;
  const auto error = set_topic_setting(settings, "retention.ago", "1d");
  ASSERT_TRUE(error);
  EXPECT_THAT(error->message, HasSubstr("did you mean \"retention.age\"?"));
}

TEST(TopicSettings, RefusedValueChangesNothingAndSaysTheRule) {
  const std::vector<std::pair<std::string, std::string>> wrong{
      {"durability", "Disk"},     {"retention.age", "14"},    {"retention.age", "0s"},
      {"retention.bytes", "0B"},  {"segment.bytes", "1B"},    {"segment.bytes", "9TiB"},
      {"segment.age", "forever"}, {"batch.bytes", "17MiB"},   {"batch.bytes", "-1KiB"},
      {"batch.bytes", ""},        {"segment.age", "10 days"}, {"min_isr", "0"},
      {"min_isr", "129"},         {"min_isr", "2 "},          {"min_isr", ""}};
  for (const auto& [name, value] : wrong) {
    TopicSettings settings;
    const auto error = set_topic_setting(settings, name, value);
    ASSERT_TRUE(error) << name << value;
    EXPECT_THAT(error->message, HasSubstr(name));
    EXPECT_EQ(settings, TopicSettings());
  }
}

TEST(TopicSettings, AllErrorsComeAtOnceAndNothingIsApplied) {
  TopicSettings settings;
  const auto errors = apply_topic_settings(
      settings, {{"durability", "memory"}, {"batch.bytes", "1"}, {"nonsense", "1"}});
  EXPECT_EQ(errors.size(), 2u);
  EXPECT_EQ(settings, TopicSettings());
}

TEST(TopicName, RulesAreNamed) {
  for (const char* good : {"a", "orders", "a.b_c-9", "_x", "...", "9"})
    EXPECT_FALSE(check_topic_name(good)) << good;
  for (const auto& bad : {std::string(), std::string("."), std::string(".."), std::string("__x"),
                          std::string("-x"), std::string("a/b"), std::string("a b"),
                          std::string("\xc3\xa4"), std::string("a\0b", 3), std::string(250, 'a')})
    EXPECT_TRUE(check_topic_name(bad)) << bad;
  EXPECT_FALSE(check_topic_name(std::string(249, 'a')));
}

}  // namespace
}  // namespace mq::model
