#include "replication/image_puller.h"

#include <gtest/gtest.h>

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
  ImagePuller puller{config, link, view, runtime};
  std::uint64_t newest = version(1, 1);
  bool applies_at_once = true;
  bool away = false;
  bool deltas = true;
  bool wrong_base = false;
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

TEST_F(ImagePullerTest, ARefusalWaitsForTheNextRegistration) {
  refusal = protocol::WireError::stale_broker_epoch;
  begin();
  run_for(5s);
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

  EXPECT_FALSE(view.image());
  refusal.reset();
  puller.set_epoch(model::BrokerEpoch(8));
  run_for(1ms);
  EXPECT_TRUE(view.image());
  EXPECT_EQ(link.pulls.back().broker_epoch, 8);
}
  link.wake();  // what was asked in the old epoch may be under way

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

}  // namespace
}  // namespace mq::replication
