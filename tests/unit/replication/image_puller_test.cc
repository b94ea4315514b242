#include "replication/image_puller.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/log.h"
#include "scripted_controller.h"
#include "support/run.h"
#include "support/sim_runtime.h"

namespace mq::replication {
namespace {

using namespace std::chrono_literals;
using testing::image_topic;
using testing::partition;
using testing::version;

class ImagePullerTest : public ::testing::Test {
 protected:
  ImagePullerTest() {
    link.on_pull = [this](const protocol::PullImageRequest& request) { return answer(request); };
    view.on_image([this](const ImagePtr& image) {
      if (applies_at_once) puller.applied(image->version());
    });
  }
  ~ImagePullerTest() override {
    away = true;
    link.wake();
    mq::testing::run(simulator, puller.stop());
  }

  base::Result<protocol::PullImageResponse> answer(const protocol::PullImageRequest& request) {
    if (away) return make_error_code(base::BaseErrc::connection_lost);
    protocol::PullImageResponse response;
    if (refusal) {
      response.envelope.status = protocol::Status::of(*refusal, "no", 1);
      return response;
    }
    response.version = newest;
    response.controller = 1;
    response.topic_defaults = topic_defaults;
    response.cluster_time = cluster_time;
    if (request.have_version == newest) response.held_ms = held.value_or(config.wait) / 1ms;
    if (request.have_version == newest) return response;
    response.topics = {image_topic("orders", 1, {partition(0, 1, 1, 1)})};
    // A change where the broker has the image before.
    if (request.have_version != 0 && request.have_version >> 32 == newest >> 32 && deltas)
      response.base_version = wrong_base ? request.have_version - 1 : request.have_version;
    return response;
  }
  void publish(std::uint64_t at) {
    newest = at;
    link.wake();
  }
  void begin() {
    puller.set_epoch(model::BrokerEpoch(7));
    puller.start();
  }
  void run_for(base::Duration span) { simulator.run_for(span); }

  mq::testing::Simulator simulator{1};
  mq::testing::SimRuntime runtime{simulator};
  testing::ScriptedController link{runtime};
  ClusterView view{runtime};
  const ImagePullerConfig config{.broker = model::BrokerId(2)};
  std::map<std::string, std::string> topic_defaults;
  ImagePuller puller{config, link, view, runtime};
  std::uint64_t newest = version(1, 1);
  bool applies_at_once = true;
  bool away = false;
  bool deltas = true;
  bool wrong_base = false;
  const protocol::ClusterTime cluster_time{protocol::ClockVerdict::agreed, 1'800'000'000'000, 0, 3};
  std::optional<base::Duration> held;  // as it says; none: as long as it was
  std::optional<protocol::WireError> refusal;
};

TEST_F(ImagePullerTest, NothingIsPulledBeforeTheRegistration) {
  puller.start();
  run_for(10s);
  EXPECT_TRUE(link.pulls.empty());
  EXPECT_FALSE(view.image());
  puller.set_epoch(model::BrokerEpoch(7));
  run_for(1s);
  ASSERT_TRUE(view.image());
  EXPECT_EQ(view.version(), version(1, 1));
  EXPECT_EQ(link.pulls[0].broker, 2);
  EXPECT_EQ(link.pulls[0].broker_epoch, 7);
  EXPECT_EQ(link.pulls[0].have_version, 0U);
}

TEST_F(ImagePullerTest, TopicDefaultsOtherThanTheControllersAreNamed) {
  begin();
  run_for(1s);
  EXPECT_EQ(puller.differing_defaults(), "");
  topic_defaults = {{"durability", "memory"}, {"segment.bytes", "64MiB"}};
  publish(version(2, 1));
  run_for(1s);
  EXPECT_EQ(puller.differing_defaults(),
            "[topic.defaults] of the controller, broker 1, are in force, and differ from those "
            "here: durability is memory, not disk, segment.bytes is 64MiB, not 128MiB");
  topic_defaults.clear();
  publish(version(3, 1));
  run_for(1s);
  EXPECT_EQ(puller.differing_defaults(), "");
}

TEST_F(ImagePullerTest, ADefaultThatIsNotTakenIsNamedOncePerChange) {
  std::string warnings;
  base::set_log_sink([&](base::LogLevel level, std::string_view, std::string_view text) {
    if (level == base::LogLevel::warning) warnings += std::string(text) + "\n";
  });
  topic_defaults = {{"of.the.future", "x"}};
  begin();
  for (std::uint64_t n = 1; n <= 3; ++n) {
    publish(version(1, n));
    run_for(1s);
    ASSERT_EQ(view.version(), version(1, n));
  }
  EXPECT_EQ(std::ranges::count(warnings, '\n'), 1) << warnings;
  topic_defaults.emplace("of.the.far.future", "x");
  publish(version(2, 1));
  run_for(1s);
  EXPECT_EQ(std::ranges::count(warnings, '\n'), 3) << warnings;
  base::set_log_sink({});
}

TEST_F(ImagePullerTest, ChangesFollowInOneLongPollAfterTheOther) {
  begin();
  run_for(1s);
  ASSERT_EQ(link.pulls.size(), 2U);
  EXPECT_EQ(link.pulls[1].have_version, version(1, 1));
  publish(version(1, 2));
  run_for(1ms);
  EXPECT_EQ(view.version(), version(1, 2));
  // Without news there is one pull for each wait.
  const auto before = link.pulls.size();
  run_for(10 * config.wait);
  EXPECT_NEAR(static_cast<double>(link.pulls.size() - before), 10, 1);
}

// The controller takes a pull for a promise: the image it names is in force.
TEST_F(ImagePullerTest, TheNextPullComesWhenTheImageIsInForce) {
  applies_at_once = false;
  begin();
  run_for(10s);
  EXPECT_EQ(link.pulls.size(), 1U);
  puller.applied(version(1, 1));
  run_for(1s);
  ASSERT_EQ(link.pulls.size(), 2U);
  EXPECT_EQ(link.pulls[1].have_version, version(1, 1));
}

TEST_F(ImagePullerTest, AnAwayControllerIsTriedAgainAndTheImageStays) {
  begin();
  run_for(1s);
  away = true;
  link.wake();
  run_for(60s);
  EXPECT_EQ(view.version(), version(1, 1));
  EXPECT_FALSE(puller.trouble().empty());
  const auto tries = link.pulls.size();
  EXPECT_GT(tries, 30U);  // one a second at least
  EXPECT_LT(tries, 100U);
  away = false;
  newest = version(2, 1);
  puller.try_now();
  run_for(1ms);
  EXPECT_EQ(view.version(), version(2, 1));
  EXPECT_TRUE(puller.trouble().empty());
}

// It may not serve yet when this broker hears of it, and whatever was tried before was somebody
// else.
TEST_F(ImagePullerTest, ANewControllerIsAskedAgainAtShortIntervals) {
  begin();
  run_for(1s);
  away = true;
  link.wake();
  run_for(60s);
  puller.try_now();
  run_for(1ms);
  away = false;
  newest = version(2, 1);
  run_for(200ms);
  EXPECT_EQ(view.version(), version(2, 1));
}

TEST_F(ImagePullerTest, ARefusalWaitsForTheNextRegistration) {
  refusal = protocol::WireError::stale_broker_epoch;
  begin();
  run_for(5s);
  EXPECT_FALSE(view.image());
  refusal.reset();
  puller.set_epoch(model::BrokerEpoch(8));
  link.wake();  // what was asked in the old epoch may be under way
  run_for(1ms);
  EXPECT_TRUE(view.image());
  EXPECT_EQ(link.pulls.back().broker_epoch, 8);
}

TEST_F(ImagePullerTest, AnAnswerThatDoesNotFollowIsFollowedByASnapshot) {
  begin();
  run_for(1s);
  wrong_base = true;
  publish(version(1, 3));
  run_for(40ms);
  EXPECT_EQ(view.version(), version(1, 1));
  run_for(1s);
  EXPECT_EQ(view.version(), version(1, 3));
  const auto asked_for_all =
      std::ranges::count(link.pulls, 0U, [](const auto& one) { return one.have_version; });
  EXPECT_EQ(asked_for_all, 2);
}

TEST_F(ImagePullerTest, AnEarlierControllerIsNotHeard) {
  newest = version(5, 1);
  begin();
  run_for(1s);
  publish(version(4, 900));
  run_for(30s);
  EXPECT_EQ(view.version(), version(5, 1));
  publish(version(5, 2));
  run_for(2s);
  EXPECT_EQ(view.version(), version(5, 2));
}

// LOG-14
TEST_F(ImagePullerTest, EachPullTellsTheWallClockAndBringsTheTimeOfTheOthers) {
  std::vector<std::pair<protocol::ClusterTime, base::TimePoint>> told;
  puller.on_cluster_time(
      [&](const auto& time, base::TimePoint at) { told.emplace_back(time, at); });
  runtime.jump_wall_clock(86'400'000);
  begin();
  run_for(1ms);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].first, cluster_time);
  run_for(config.wait + 1ms);
  ASSERT_EQ(link.pulls.size(), 3U);
  const auto apart = link.pulls[2].wall_clock_ms - link.pulls[0].wall_clock_ms;
  EXPECT_EQ(apart, config.wait / 1ms);
  EXPECT_NEAR(static_cast<double>(link.pulls[0].wall_clock_ms - runtime.wall_clock_ms()), 0, 3'000);
  // Held all the time: it is of the moment in which it came. Else it was under way for half of
  // that.
  EXPECT_EQ(told[1].second, runtime.now() - 2ms);
  held = 1s;  // of the pull after the one that is under way
  run_for(2 * config.wait);
  ASSERT_EQ(told.size(), 4U);
  EXPECT_EQ(told[3].second, runtime.now() - 2ms - 500ms);
}

TEST_F(ImagePullerTest, AnAnswerThatWasLongUnderWaySaysNothingAboutTime) {
  int told = 0;
  puller.on_cluster_time([&](const auto&, base::TimePoint) { ++told; });
  held = -1s;
  begin();
  run_for(4 * config.wait);
  EXPECT_EQ(told, 1);  // the image that came at once
  held.reset();
  run_for(2 * config.wait);
  EXPECT_GE(told, 2);
}

}  // namespace
}  // namespace mq::replication
