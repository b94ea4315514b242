#include "controller/image_log.h"

#include <gtest/gtest.h>

#include "support/run.h"
#include "support/sim_runtime.h"

namespace mq::controller {
namespace {

class ImageLogTest : public ::testing::Test {
 protected:
  static base::Uuid uuid(std::uint64_t n) { return base::Uuid::from_random(n, n); }
  static metadata::TopicPtr topic(std::uint64_t n, const std::string& name) {
    auto topic = std::make_shared<metadata::TopicInfo>();
    topic->name = name;
    topic->id = uuid(n);
    return topic;
  }
  void publish(metadata::ImageChange change, std::vector<base::Uuid> touched) {
    const auto before = log_.image();
    const metadata::ClusterImage empty(uuid(99), model::BrokerId(1), {}, {}, 0);
    log_.publish((before ? *before : empty).with(std::move(change), log_.next_version()),
                 std::move(touched));
  }
  void put(std::uint64_t n, const std::string& name) {
    metadata::ImageChange change;
    change.topics = {topic(n, name)};
    publish(std::move(change), {uuid(n)});
  }
  void remove(std::uint64_t n) {
    metadata::ImageChange change;
    change.removed = {uuid(n)};
    publish(std::move(change), {uuid(n)});
  }

  mq::testing::Simulator simulator_{1};
  mq::testing::SimRuntime runtime_{simulator_};
  ImageLog log_{runtime_, 4, {}};
};

TEST_F(ImageLogTest, VersionsAreAboveThoseOfEveryEarlierController) {
  const ImageLog earlier(runtime_, 3, {});
  put(1, "a");
  EXPECT_EQ(log_.image()->version(), (std::uint64_t{5} << 32) + 1);
  EXPECT_GT(log_.next_version(), earlier.next_version() + 0xfffffff0);
}

TEST_F(ImageLogTest, WhoHasNothingOrAnotherControllersImageGetsEverything) {
  put(1, "a");
  put(2, "b");
  for (const std::uint64_t have :
       {std::uint64_t{0}, (std::uint64_t{4} << 32) + 1, (std::uint64_t{6} << 32) + 1}) {
    const auto answer = log_.answer(have);
    EXPECT_EQ(answer.base_version, 0u);
    EXPECT_EQ(answer.topics.size(), 2u);
  }
}

TEST_F(ImageLogTest, WhoHasAnImageGetsWhatIsDifferent) {
  put(1, "a");
  const auto have = log_.image()->version();
  put(2, "b");
  put(2, "b");
  remove(1);
  const auto answer = log_.answer(have);
  EXPECT_EQ(answer.base_version, have);
  ASSERT_EQ(answer.topics.size(), 1u);
  EXPECT_EQ(answer.topics[0].name, "b");
  EXPECT_EQ(answer.removed, std::vector{uuid(1)});
}

TEST_F(ImageLogTest, TopicsComeWithTheDefaultsThatAreNotBuiltIn) {
  model::TopicSettings defaults;
  defaults.durability = model::Durability::memory;
  ImageLog log(runtime_, 4, defaults);
  for (const std::uint64_t n : {1, 2}) {
    metadata::ImageChange change;
    change.topics = {topic(n, "a" + std::to_string(n))};
    const auto before = log.image();
    const metadata::ClusterImage empty(uuid(99), model::BrokerId(1), {}, {}, 0);
    log.publish((before ? *before : empty).with(std::move(change), log.next_version()), {uuid(n)});
  }
  const std::map<std::string, std::string> told{{"durability", "memory"}};
  EXPECT_EQ(log.answer(0).topic_defaults, told);
  const auto change = log.answer(log.image()->version() - 1);
  EXPECT_NE(change.base_version, 0u);
  EXPECT_EQ(change.topic_defaults, told);
}

TEST_F(ImageLogTest, ATopicMadeAgainUnderItsNameIsGoneAndNew) {
  put(1, "a");
  const auto have = log_.image()->version();
  remove(1);
  put(2, "a");
  const auto answer = log_.answer(have);
  EXPECT_EQ(answer.removed, std::vector{uuid(1)});
  ASSERT_EQ(answer.topics.size(), 1u);
  EXPECT_EQ(answer.topics[0].id, uuid(2));
}

TEST_F(ImageLogTest, AnImageFromBeforeWhatIsRememberedIsReplaced) {
  put(1, "a");
  const auto have = log_.image()->version();
  for (int i = 0; i < 10'100; ++i) put(2, "b");
  EXPECT_EQ(log_.answer(have).base_version, 0u);
  const auto late = log_.image()->version() - 5;
  EXPECT_EQ(log_.answer(late).base_version, late);
}

TEST_F(ImageLogTest, WaitingEndsWithTheNextImageOrAtTheDeadline) {
  put(1, "a");
  const auto have = log_.image()->version();
  simulator_.start_timer(runtime_.now() + std::chrono::seconds(1), [&] { put(2, "b"); });
  const auto began = runtime_.now();
  mq::testing::run(simulator_, log_.wait_for_newer(have, began + std::chrono::seconds(5)));
  EXPECT_EQ(runtime_.now(), began + std::chrono::seconds(1));
  mq::testing::run(simulator_, log_.wait_for_newer(log_.image()->version(),
                                                   runtime_.now() + std::chrono::seconds(5)));
  EXPECT_EQ(runtime_.now(), began + std::chrono::seconds(6));
  const auto nothing = log_.answer(log_.image()->version());
  EXPECT_EQ(nothing.version, nothing.base_version);
}

}  // namespace
}  // namespace mq::controller
