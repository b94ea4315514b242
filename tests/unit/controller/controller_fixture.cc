#include "unit/controller/controller_fixture.h"

#include "metadata/node_values.h"
#include "metadata/znode_layout.h"

namespace mq::testing {
namespace {

controller::ControllerConfig sample_config(std::uint64_t incarnation) {
  controller::ControllerConfig config;
  config.broker = model::BrokerId(1);
  config.cluster_id = base::Uuid::from_random(77, 77);
  config.incarnation = base::Uuid::from_random(1000 + incarnation, 1);
  config.disks = {base::Uuid::from_random(5, 5)};
  config.advertised = {"localhost", 9500};
  config.default_partitions = 2;
  config.partitions_max = 10'050;
  return config;
}

}  // namespace

asio::awaitable<base::Result<void>> FakeReplicas::open_topic(metadata::TopicPtr topic) {
  if (disk_.on_open) disk_.on_open();
  co_await runtime_.sleep_for(std::chrono::milliseconds(1));
  ++disk_.opens;
  if (disk_.open_error) co_return disk_.open_error;
  disk_.topics.insert(topic->id);
  co_return base::Result<void>();
}

asio::awaitable<void> FakeReplicas::stop_topic(base::Uuid) {
  co_await runtime_.sleep_for(std::chrono::milliseconds(1));
}

asio::awaitable<base::Result<void>> FakeReplicas::delete_topic(base::Uuid topic) {
  co_await runtime_.sleep_for(disk_.delete_time);
  ++disk_.deletes;
  if (disk_.delete_error) co_return disk_.delete_error;
  disk_.topics.erase(topic);
  co_return base::Result<void>();
}

ControllerProcess::ControllerProcess(base::Runtime& runtime,
                                     std::shared_ptr<metadata::MemoryStoreState> state,
                                     FakeDisk& disk, std::uint64_t incarnation,
                                     base::Duration latency)
    : store(metadata::open_memory_store(std::move(state), runtime, {.latency_max = latency})),
      replicas(disk, runtime),
      controller(sample_config(incarnation), *store, replicas, runtime) {}

base::Error ControllerFixture::start() {
  stop();
  process_ =
      std::make_unique<ControllerProcess>(runtime_, state_, disk_, ++incarnations_, latency_);
  if (const auto started = run(controller().start()); !started) return started.error();
  // Recovery makes the logs that a crash kept from being made.
  for (const auto& [name, topic] : controller().image()->topics()) disk_.topics.insert(topic->id);
  const auto finished = run(controller().finish_half_done());
  wait_for_files();
  return finished.error();
}

void ControllerFixture::stop() {
  if (!process_) return;
  run(process_->controller.stop());
  process_.reset();
}

protocol::TopicResult ControllerFixture::create(protocol::NewTopic topic, bool validate_only) {
  return run(controller().create_topic(std::move(topic), validate_only, in(std::chrono::hours(1))));
}

protocol::TopicResult ControllerFixture::create(const std::string& name, std::int32_t partitions) {
  protocol::NewTopic topic;
  topic.name = name;
  topic.partitions = partitions;
  return create(std::move(topic));
}

protocol::TopicResult ControllerFixture::remove(const std::string& name) {
  auto result = run(controller().delete_topic(name, in(std::chrono::hours(1))));
  wait_for_files();
  return result;
}

void ControllerFixture::wait_for_files() {
  simulator_.run_until([this] { return controller().deletions_under_way() == 0; },
                       std::chrono::hours(1));
}

std::vector<std::string> ControllerFixture::paths(const std::string& prefix) const {
  std::vector<std::string> found;
  for (const auto& [path, node] : state_->nodes) {
    if (path.starts_with(prefix)) found.push_back(path);
  }
  return found;
}

void ControllerFixture::expect_consistent() {
  const auto image = controller().image();
  std::vector<std::string> topics;
  std::vector<std::string> states;
  std::set<base::Uuid> ids;
  for (const auto& [name, topic] : image->topics()) {
    topics.push_back(metadata::layout::topic(name));
    states.push_back(metadata::layout::topic_state(topic->id));
    ids.insert(topic->id);
    for (const auto& partition : topic->partitions) {
      const auto path = metadata::layout::partition_state(partition.id);
      states.push_back(path);
      const auto& node = state_->nodes.at(path);
      EXPECT_EQ(node.version, partition.version.value()) << path;
      const auto value = metadata::decode_partition_state(node.value);
      ASSERT_TRUE(value);
      EXPECT_EQ(value->leader_epoch, partition.leader_epoch) << path;
      EXPECT_EQ(value->leader, partition.leader);
    }
  }
  std::sort(states.begin(), states.end());
  EXPECT_EQ(paths("/topics/"), topics);
  EXPECT_EQ(paths("/state/"), states);
  EXPECT_TRUE(paths("/deleting/").empty());
  EXPECT_TRUE(controller().topics_being_deleted().empty());
  EXPECT_EQ(disk_.topics, ids);
}

}  // namespace mq::testing
