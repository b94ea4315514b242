#include "controller/cluster_tree.h"

#include <algorithm>
#include <iterator>
#include <span>

#include "base/log.h"
#include "controller/error.h"
#include "metadata/znode_layout.h"

namespace mq::controller {
namespace {

namespace layout = metadata::layout;

Error damaged(const std::string& path, std::string_view why) {
  base::log_error("controller", "the metadata node {} {}", base::printable(path, 300), why);
  return ControllerErrc::damaged_metadata;
}

Result<std::vector<base::Uuid>> to_uuids(const Result<std::vector<std::string>>& names,
                                         std::string_view folder) {
  if (!names) return names.error();
  std::vector<base::Uuid> ids;
  for (const auto& name : *names) {
    const auto id = base::Uuid::from_hex(name);
    if (!id) return damaged(std::string(folder) + "/" + name, "is not named after a topic's uuid");
    ids.push_back(*id);
  }
  return ids;
}

Result<TopicTree> parse_topic(const std::string& name, const metadata::Node& node) {
  const auto path = layout::topic(name);
  auto value = metadata::decode_topic(node.value);
  if (!value) return damaged(path, "does not parse");
  if (value->name != name || value->id.is_zero()) return damaged(path, "is of another topic");
  return TopicTree{std::move(*value), node.version, {}};
}

std::vector<std::string> state_paths(const TopicTree& topic) {
  std::vector<std::string> paths;
  for (const auto& partition : topic.value.partitions)
    paths.push_back(layout::partition_state({topic.value.id, partition.number}));
  return paths;
}

Result<void> add_states(TopicTree& topic, std::span<const std::optional<metadata::Node>> nodes,
                        std::span<const std::string> paths) {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!nodes[i]) return damaged(paths[i], "is missing");
    auto state = metadata::decode_partition_state(nodes[i]->value);
    if (!state) return damaged(paths[i], "does not parse");
    topic.partitions.push_back(
        {{topic.value.id, topic.value.partitions[i].number}, std::move(*state), nodes[i]->version});
  }
  return {};
}

metadata::PartitionAssignment to_assignment(const metadata::TopicPartition& partition,
                                            const PartitionNode& node) {
  metadata::PartitionAssignment assignment;
  assignment.id = node.id;
  assignment.leader = node.state.leader;
  assignment.leader_epoch = node.state.leader_epoch;
  assignment.version = model::PartitionVersion(node.version);
  assignment.replicas = partition.replicas;
  assignment.isr = node.state.isr;
  assignment.elr = node.state.elr;
  assignment.min_isr = node.state.min_isr;
  return assignment;
}

asio::awaitable<Result<std::vector<std::string>>> list_topics(metadata::MetadataStore& store) {
  const auto nodes = co_await store.children(std::string(layout::kTopics));
  if (!nodes) co_return nodes.error();
  std::vector<std::string> names;
  for (const auto& node : *nodes) {
    auto name = layout::unescape_name(node);
    if (!name)
      co_return damaged(std::string(layout::kTopics) + "/" + node, "is not named after a topic");
    names.push_back(std::move(*name));
  }
  co_return std::move(names);
}

asio::awaitable<Result<std::vector<base::Uuid>>> list_deleting(metadata::MetadataStore& store) {
  const auto names = co_await store.children(std::string(layout::kDeleting));
  co_return to_uuids(names, layout::kDeleting);
}

asio::awaitable<Result<std::vector<TopicTree>>> load_topic_nodes(metadata::MetadataStore& store) {
  const auto names = co_await list_topics(store);
  if (!names) co_return names.error();
  std::vector<std::string> paths;
  for (const auto& name : *names) paths.push_back(layout::topic(name));
  const auto nodes = co_await store.get_many(paths);
  if (!nodes) co_return nodes.error();
  std::vector<TopicTree> topics;
  for (std::size_t i = 0; i < nodes->size(); ++i) {
    if (!(*nodes)[i]) continue;  // a write of the controller before came in between
    auto topic = parse_topic((*names)[i], *(*nodes)[i]);
    if (!topic) co_return topic.error();
    topics.push_back(std::move(*topic));
  }
  co_return std::move(topics);
}

asio::awaitable<Result<std::vector<metadata::TopicValue>>> load_deleting(
    metadata::MetadataStore& store) {
  const auto ids = co_await list_deleting(store);
  if (!ids) co_return ids.error();
  std::vector<std::string> paths;
  for (const auto& id : *ids) paths.push_back(layout::deleting(id));
  const auto nodes = co_await store.get_many(paths);
  if (!nodes) co_return nodes.error();
  std::vector<metadata::TopicValue> topics;
  for (std::size_t i = 0; i < nodes->size(); ++i) {
    if (!(*nodes)[i]) continue;
    auto topic = metadata::decode_topic((*nodes)[i]->value);
    if (!topic || topic->id != (*ids)[i]) co_return damaged(paths[i], "does not parse");
    topics.push_back(std::move(*topic));
  }
  co_return std::move(topics);
}

}  // namespace

std::set<model::BrokerId> brokers_of(const metadata::TopicValue& topic) {
  std::set<model::BrokerId> brokers;
  for (const auto& partition : topic.partitions)
    brokers.insert(partition.replicas.begin(), partition.replicas.end());
  return brokers;
}

std::set<std::int32_t> partition_numbers(const metadata::TopicValue& topic) {
  std::set<std::int32_t> numbers;
  for (const auto& partition : topic.partitions) numbers.insert(partition.number);
  return numbers;
}

asio::awaitable<Result<ClusterTree>> load_tree(metadata::MetadataStore& store) {
  auto topics = co_await load_topic_nodes(store);
  if (!topics) co_return topics.error();
  std::vector<std::string> paths;
  for (const auto& topic : *topics)
    std::ranges::move(state_paths(topic), std::back_inserter(paths));
  const auto states = co_await store.get_many(paths);
  if (!states) co_return states.error();
  std::size_t done = 0;
  for (auto& topic : *topics) {
    const auto count = topic.value.partitions.size();
    const auto added = add_states(topic, std::span(*states).subspan(done, count),
                                  std::span(paths).subspan(done, count));
    if (!added) co_return added.error();
    done += count;
  }
  auto deleting = co_await load_deleting(store);
  if (!deleting) co_return deleting.error();
  ClusterTree tree;
  tree.topics = std::move(*topics);
  tree.deleting = std::move(*deleting);
  co_return std::move(tree);
}

asio::awaitable<Result<std::vector<base::Uuid>>> list_state(metadata::MetadataStore& store) {
  const auto names = co_await store.children(std::string(layout::kState));
  co_return to_uuids(names, layout::kState);
}

metadata::TopicInfo to_info(const TopicTree& topic, const model::TopicSettings& defaults) {
  metadata::TopicInfo info;
  info.name = topic.value.name;
  info.id = topic.value.id;
  info.overrides = topic.value.overrides;
  info.settings = defaults;
  for (const auto& [name, value] : info.overrides) {
    if (const auto refused = model::set_topic_setting(info.settings, name, value))
      base::log_error("controller", "topic {}: a stored setting is not in force: {}", info.name,
                      refused->message);
  }
  for (std::size_t i = 0; i < topic.partitions.size(); ++i)
    info.partitions.push_back(to_assignment(topic.value.partitions[i], topic.partitions[i]));
  return info;
}

}  // namespace mq::controller
