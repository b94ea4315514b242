#include <gmock/gmock.h>

#include "base/result.h"
#include "metadata/znode_layout.h"
#include "storage/storage_error.h"
#include "unit/controller/controller_fixture.h"

namespace mq::controller {
namespace {

using protocol::NewTopic;
using protocol::TopicResult;
using protocol::WireError;
using ::testing::HasSubstr;

class ControllerTopics : public mq::testing::ControllerFixture {
 protected:
  ControllerTopics() { EXPECT_FALSE(start()); }
  NewTopic topic_with(std::map<std::string, std::string> settings) {
    NewTopic topic;
    topic.name = "orders";
    topic.settings = std::move(settings);
    return topic;
  }
};

TEST_F(ControllerTopics, CreatedTopicIsInTheImageAndItsLogsAreOpen) {
  const auto result = create("orders", 3);
  ASSERT_TRUE(result.status.ok()) << result.status.text;
  EXPECT_EQ(result.name, "orders");
  EXPECT_EQ(result.partitions, 3);
  ASSERT_TRUE(topic("orders"));
  EXPECT_EQ(topic("orders")->id, result.id);
  EXPECT_TRUE(disk_.topics.contains(result.id));
  const auto& partition = topic("orders")->partitions[2];
  EXPECT_EQ(partition.id.partition, 2);
  EXPECT_EQ(partition.leader, model::BrokerId(1));
  EXPECT_THAT(partition.replicas, ::testing::ElementsAre(model::BrokerId(1)));
  EXPECT_THAT(partition.isr, ::testing::ElementsAre(model::BrokerId(1)));
  expect_consistent();
}

TEST_F(ControllerTopics, DefaultsComeFromTheConfiguration) {
  ASSERT_TRUE(create("orders").status.ok());
  EXPECT_EQ(topic("orders")->partitions.size(), 2u);
  EXPECT_EQ(topic("orders")->settings, model::TopicSettings());
}

TEST_F(ControllerTopics, OverridesAreInForceAndSurviveARestart) {
  const auto result = create(topic_with({{"durability", "memory"}, {"retention.age", "3d"}}));
  ASSERT_TRUE(result.status.ok()) << result.status.text;
  for (int starts = 0; starts < 2; ++starts) {
    EXPECT_EQ(topic("orders")->settings.durability, model::Durability::memory);
    EXPECT_EQ(topic("orders")->settings.retention_age, std::chrono::hours(72));
    EXPECT_EQ(topic("orders")->overrides.size(), 2u);
    EXPECT_EQ(topic("orders")->id, result.id);
    ASSERT_FALSE(start());
  }
}

TEST_F(ControllerTopics, NoMorePartitionsAreMadeThanTheBrokerCanHold) {
  ASSERT_TRUE(create("many", 10'000).status.ok());
  const auto before = state_->nodes.size();
  const auto refused = create("more", 51);
  EXPECT_EQ(refused.status.error(), WireError::invalid_request);
  EXPECT_EQ(refused.status.text,
            "partitions = 51: there are 10000 already, and the broker's limit of open files allows "
            "10050 in all");
  EXPECT_EQ(state_->nodes.size(), before);
  EXPECT_TRUE(create("more", 50).status.ok());
  EXPECT_EQ(create("one", 1).status.error(), WireError::invalid_request);
  ASSERT_TRUE(remove("more").status.ok());
  EXPECT_TRUE(create("one", 1).status.ok());
}

TEST_F(ControllerTopics, RefusalsSayWhatIsWrongAndWriteNothing) {
  ASSERT_TRUE(create("orders").status.ok());
  const auto before = state_->nodes;
  const auto refuse = [&](NewTopic topic, WireError error, const std::string& text) {
    const auto result = create(std::move(topic));
    EXPECT_EQ(result.status.error(), error);
    EXPECT_THAT(result.status.text, HasSubstr(text));
    EXPECT_EQ(result.status.broker, 1);
    EXPECT_TRUE(result.id.is_zero());
  };
  NewTopic topic;
  topic.name = "orders";
  refuse(topic, WireError::topic_exists, "topic \"orders\" exists");
  topic.name = "new";
  topic.partitions = 0;
  refuse(topic, WireError::invalid_partitions, "partitions = 0: choose 1 to 10000");
  topic.partitions = 10'001;
  refuse(topic, WireError::invalid_partitions, "partitions = 10001: choose 1 to 10000");
  topic.partitions = -7;
  refuse(topic, WireError::invalid_partitions, "partitions = -7");
  topic.partitions = 1;
  topic.replicas = 3;
  refuse(topic, WireError::invalid_replicas, "replicas = 3: a standalone broker keeps one replica");
  topic.replicas = 1;
  topic.min_isr = 2;
  refuse(topic, WireError::invalid_replicas, "min_isr = 2: a standalone broker keeps one replica");
  topic.min_isr = 0;
  refuse(topic, WireError::invalid_replicas, "min_isr = 0: must be 1");
  topic.min_isr = 1;
  topic.settings = {{"retention.aeg", "3d"}, {"segment.bytes", "5"}};
  refuse(topic, WireError::invalid_config, "did you mean \"retention.age\"?");
  refuse(topic, WireError::invalid_config, "segment.bytes = \"5\"");
  EXPECT_EQ(state_->nodes.size(), before.size());
  EXPECT_EQ(disk_.opens, 1);
  expect_consistent();
}

TEST_F(ControllerTopics, NamesFollowTheRule) {
  const std::vector<std::string> bad{"",
                                     ".",
                                     "..",
                                     "a/b",
                                     " ",
                                     "a b",
                                     "é",
                                     "%2e",
                                     "-x",
                                     "__internal",
                                     "a\nb",
                                     std::string(250, 'x'),
                                     std::string(255, 'x')};
  for (const auto& name : bad) {
    const auto result = create(name);
    EXPECT_EQ(result.status.error(), WireError::invalid_topic_name) << name;
    EXPECT_THAT(result.status.text, HasSubstr("topic"));
    EXPECT_EQ(result.status.text.find('\n'), std::string::npos);
  }
  EXPECT_THAT(create("a\nb").status.text, HasSubstr("topic \"a\\x0ab\": "));
  const std::vector<std::string> good{"a",   "A",    "a.b", "a_b",
                                      "...", "_one", "9",   std::string(249, 'x')};
  for (const auto& name : good) EXPECT_TRUE(create(name, 1).status.ok()) << name;
  expect_consistent();
  ASSERT_FALSE(start());
  expect_consistent();
  for (const auto& name : good) EXPECT_TRUE(remove(name).status.ok()) << name;
  EXPECT_TRUE(disk_.topics.empty());
  for (const auto& name : good) EXPECT_TRUE(create(name, 1).status.ok()) << name;
  expect_consistent();
}

TEST_F(ControllerTopics, LongestNameWithMostPartitionsMakesTheWholeRound) {
  const std::string name(249, 'n');
  ASSERT_TRUE(create(name, 10'000).status.ok());
  expect_consistent();
  ASSERT_TRUE(remove(name).status.ok());
  expect_consistent();
  EXPECT_TRUE(paths("/state/").empty());
}

TEST_F(ControllerTopics, ValidateOnlyChecksAndChangesNothing) {
  const auto nodes = state_->nodes.size();
  NewTopic topic;
  topic.name = "orders";
  topic.partitions = 5;
  const auto good = create(topic, true);
  EXPECT_TRUE(good.status.ok());
  EXPECT_EQ(good.partitions, 5);
  topic.partitions = 0;
  EXPECT_EQ(create(topic, true).status.error(), WireError::invalid_partitions);
  EXPECT_EQ(state_->nodes.size(), nodes);
  EXPECT_EQ(disk_.opens, 0);
  ASSERT_TRUE(create("orders").status.ok());
  topic.partitions = 1;
  EXPECT_EQ(create(topic, true).status.error(), WireError::topic_exists);
}

TEST_F(ControllerTopics, DeletedTopicLeavesNothing) {
  const auto made = create("orders", 4);
  const auto result = remove("orders");
  EXPECT_TRUE(result.status.ok());
  EXPECT_EQ(result.id, made.id);
  EXPECT_EQ(result.partitions, 4);
  EXPECT_FALSE(topic("orders"));
  EXPECT_TRUE(disk_.topics.empty());
  expect_consistent();
}

TEST_F(ControllerTopics, UnknownTopicNamesTheNearest) {
  ASSERT_TRUE(create("orders").status.ok());
  const auto result = remove("ordres");
  EXPECT_EQ(result.status.error(), WireError::unknown_topic);
  EXPECT_EQ(result.status.text, "there is no topic \"ordres\"; did you mean \"orders\"?");
  EXPECT_TRUE(topic("orders"));
  EXPECT_EQ(remove("zzzzzzzzz").status.text, "there is no topic \"zzzzzzzzz\"");
}

// PAR-6: it inherits nothing.
TEST_F(ControllerTopics, TopicMadeAgainHasANewId) {
  const auto first = create("orders");
  ASSERT_TRUE(remove("orders").status.ok());
  const auto second = create("orders");
  ASSERT_TRUE(second.status.ok());
  EXPECT_NE(first.id, second.id);
  EXPECT_FALSE(controller().image()->find_topic(first.id));
  EXPECT_EQ(topic("orders")->partitions[0].leader_epoch, model::LeaderEpoch(0));
}

TEST_F(ControllerTopics, LogsThatCannotBeOpenedUndoTheTopic) {
  disk_.open_error = storage::StorageErrc::storage_full;
  const auto result = create("orders");
  EXPECT_EQ(result.status.error(), WireError::storage_full);
  EXPECT_THAT(result.status.text, HasSubstr("topic \"orders\" was not created"));
  EXPECT_FALSE(topic("orders"));
  expect_consistent();
  disk_.open_error = {};
  EXPECT_TRUE(create("orders").status.ok());
}

// REC-9: what stands under /deleting is deleted, sooner or later, and nothing else.
TEST_F(ControllerTopics, LogsThatCannotBeDeletedAreTriedAgain) {
  const auto made = create("orders");
  disk_.delete_error = base::BaseErrc::io_failed;
  EXPECT_TRUE(remove("orders").status.ok());
  EXPECT_FALSE(topic("orders"));
  EXPECT_THAT(controller().topics_being_deleted(), ::testing::ElementsAre(made.id));
  EXPECT_EQ(paths("/deleting/").size(), 1u);
  // Other changes go on meanwhile, under the same name too.
  EXPECT_TRUE(create("orders").status.ok());
  EXPECT_NE(topic("orders")->id, made.id);
  disk_.delete_error = {};
  simulator_.run_for(std::chrono::minutes(3));
  expect_consistent();
}

/// A disk that is away comes back at a start, if at all.
TEST_F(ControllerTopics, LogsOutOfReachWaitForTheNextStartAndHoldUpNothingElse) {
  const auto made = create("orders");
  disk_.delete_error = disk_.postpones = base::BaseErrc::not_found;
  EXPECT_TRUE(remove("orders").status.ok());
  const int tries = disk_.deletes;
  simulator_.run_for(std::chrono::hours(1));
  EXPECT_EQ(disk_.deletes, tries);
  EXPECT_THAT(controller().topics_being_deleted(), ::testing::ElementsAre(made.id));
  // Neither changes nor other repairs.
  EXPECT_TRUE(create("orders").status.ok());
  disk_.delete_error = base::BaseErrc::io_failed;
  EXPECT_TRUE(remove("orders").status.ok());
  disk_.delete_error = {};
  simulator_.run_for(std::chrono::minutes(3));
  EXPECT_THAT(controller().topics_being_deleted(), ::testing::ElementsAre(made.id));
  ASSERT_FALSE(start());
  EXPECT_TRUE(controller().topics_being_deleted().empty());
  expect_consistent();
}

TEST_F(ControllerTopics, ChangesAreMadeOneAfterTheOther) {
  latency_ = std::chrono::milliseconds(5);
  ASSERT_FALSE(start());
  std::vector<TopicResult> results(10);
  base::TaskGroup tasks(runtime_);
  const auto creator = [](ControllerTopics& self, TopicResult& into) -> asio::awaitable<void> {
    NewTopic topic;
    topic.name = "orders";
    into = co_await self.controller().create_topic(std::move(topic), false,
                                                   self.in(std::chrono::hours(1)));
  };
  for (auto& result : results) tasks.spawn("create", creator(*this, result));
  run(tasks.wait());
  int made = 0;
  for (const auto& result : results) {
    if (result.status.ok())
      ++made;
    else
      EXPECT_EQ(result.status.error(), WireError::topic_exists);
  }
  EXPECT_EQ(made, 1);
  expect_consistent();
}

TEST_F(ControllerTopics, CallerThatGivesUpDoesNotStopTheChange) {
  latency_ = std::chrono::milliseconds(50);
  ASSERT_FALSE(start());
  NewTopic topic;
  topic.name = "orders";
  const auto result = run(controller().create_topic(topic, false, in(std::chrono::nanoseconds(1))));
  EXPECT_EQ(result.status.error(), WireError::timed_out);
  EXPECT_TRUE(result.status.advice.maybe_applied);
  simulator_.run_for(std::chrono::seconds(10));
  EXPECT_TRUE(controller().image()->find_topic("orders"));
  expect_consistent();
}

TEST_F(ControllerTopics, FilesOfADeletedTopicHoldUpNobody) {
  ASSERT_FALSE(start());
  const auto first = create("orders");
  ASSERT_TRUE(first.status.ok());
  disk_.delete_time = std::chrono::minutes(10);
  const auto began = runtime_.now();
  EXPECT_TRUE(run(controller().delete_topic("orders", in(std::chrono::hours(1)))).status.ok());
  EXPECT_TRUE(run(controller().delete_topic("orders", in(std::chrono::hours(1)))).status.error() ==
              WireError::unknown_topic);
  const auto second = create("orders");
  EXPECT_TRUE(second.status.ok());
  EXPECT_NE(second.id, first.id);
  EXPECT_LT(runtime_.now() - began, std::chrono::minutes(1));
  EXPECT_EQ(controller().deletions_under_way(), 1U);
  EXPECT_THAT(controller().topics_being_deleted(), ::testing::ElementsAre(first.id));
  simulator_.run_for(std::chrono::minutes(11));
  EXPECT_EQ(disk_.deletes, 1);
  expect_consistent();
}

TEST_F(ControllerTopics, QueueIsBounded) {
  latency_ = std::chrono::milliseconds(50);
  ASSERT_FALSE(start());
  base::TaskGroup tasks(runtime_);
  std::vector<TopicResult> results(300);
  const auto creator = [](ControllerTopics& self, int number,
                          TopicResult& into) -> asio::awaitable<void> {
    NewTopic topic;
    topic.name = "topic-" + std::to_string(number);
    into = co_await self.controller().create_topic(std::move(topic), false,
                                                   self.in(std::chrono::hours(1)));
  };
  int number = 0;
  for (auto& result : results) tasks.spawn("create", creator(*this, number++, result));
  run(tasks.wait());
  const auto overloaded = std::ranges::count_if(
      results, [](const auto& one) { return one.status.error() == WireError::overloaded; });
  EXPECT_GT(overloaded, 0);
  EXPECT_LT(overloaded, 100);
}

TEST_F(ControllerTopics, StopRefusesNewChangesAndEndsThoseUnderWay) {
  latency_ = std::chrono::milliseconds(50);
  ASSERT_FALSE(start());
  NewTopic topic;
  topic.name = "orders";
  TopicResult result;
  base::TaskGroup tasks(runtime_);
  const auto creator = [](Controller& controller, NewTopic wanted, TopicResult& into,
                          base::TimePoint deadline) -> asio::awaitable<void> {
    into = co_await controller.create_topic(std::move(wanted), false, deadline);
  };
  tasks.spawn("create", creator(controller(), topic, result, in(std::chrono::hours(1))));
  simulator_.run_for(std::chrono::milliseconds(100));
  run(controller().stop());
  run(tasks.wait());
  EXPECT_TRUE(result.status.ok()) << result.status.text;
  EXPECT_EQ(create("late").status.error(), WireError::shutting_down);
  EXPECT_EQ(remove("orders").status.error(), WireError::shutting_down);
  ASSERT_FALSE(start());
  EXPECT_TRUE(this->topic("orders"));
  expect_consistent();
}

TEST_F(ControllerTopics, WaitForImageWakesAtTheNextChange) {
  const auto before = controller().image()->version();
  ImagePtr seen;
  base::TaskGroup tasks(runtime_);
  const auto waiter = [](ControllerTopics& self, std::uint64_t than,
                         ImagePtr& into) -> asio::awaitable<void> {
    into = co_await self.controller().wait_for_image(than, self.in(std::chrono::hours(1)));
  };
  tasks.spawn("wait", waiter(*this, before, seen));
  simulator_.run_for(std::chrono::seconds(1));
  EXPECT_FALSE(seen);
  ASSERT_TRUE(create("orders").status.ok());
  run(tasks.wait());
  ASSERT_TRUE(seen);
  EXPECT_GT(seen->version(), before);
  EXPECT_TRUE(seen->find_topic("orders"));
}

TEST_F(ControllerTopics, WaitForImageEndsAtItsDeadlineOrWhenItStops) {
  const auto version = controller().image()->version();
  const auto start_time = runtime_.now();
  const auto image = run(controller().wait_for_image(version, in(std::chrono::seconds(5))));
  EXPECT_EQ(image->version(), version);
  EXPECT_EQ(runtime_.now() - start_time, std::chrono::seconds(5));
  const auto old = run(controller().wait_for_image(version - 1, in(std::chrono::seconds(5))));
  EXPECT_EQ(old->version(), version);
  run(controller().stop());
  const auto stopped = run(controller().wait_for_image(version, in(std::chrono::hours(5))));
  EXPECT_EQ(stopped->version(), version);
}

TEST_F(ControllerTopics, ImageIsPublishedOnlyWhenTheLogsAreOpen) {
  std::vector<std::size_t> topics_with_logs;
  controller().on_image([&](const ImagePtr& image) {
    EXPECT_LE(image->topics().size(), disk_.topics.size());
    topics_with_logs.push_back(image->topics().size());
  });
  ASSERT_TRUE(create("a").status.ok());
  ASSERT_TRUE(create("b").status.ok());
  ASSERT_TRUE(remove("a").status.ok());
  EXPECT_THAT(topics_with_logs, ::testing::ElementsAre(1u, 2u, 1u));
}

}  // namespace
}  // namespace mq::controller
