#include "controller/cluster_tree.h"

#include <algorithm>
#include <iterator>
#include <span>

#include "base/log.h"
#include "base/mutants.h"
#include "controller/error.h"
#include "metadata/znode_layout.h"

namespace mq::controller {
namespace {

namespace layout = metadata::layout;

constexpr std::string_view kRestore = "restore it from a copy of the metadata store";

/// A child with a name that no child has there.
Damage stray(std::string_view folder, const std::string& name) {
  Damage damage;
  damage.node.path = std::string(folder) + "/" + name;
  damage.node.text = fmt::format(
      "the metadata node {} is none of mq and in the way: remove it, or whatever made it",
      base::printable(damage.node.path, 300));
  damage.read = false;
  return damage;
}

Damage damaged_topic(const std::string& name, std::string value) {
  Damage damage;
  damage.node.path = layout::topic(name);
  damage.node.topic = name;
  damage.node.text = fmt::format(
      "topic \"{}\" is lost to brokers that start, and can be given no leaders: its metadata node "
      "{} does not parse or is of another topic; {}, or remove it, and the topic with it",
      base::printable(name, 260), damage.node.path, kRestore);
  damage.value = std::move(value);
  return damage;
}

Damage damaged_state(const TopicTree& topic, const std::string& path, std::int32_t partition,
                     const std::optional<metadata::Node>& node) {
  Damage damage;
  damage.node.path = path;
  damage.node.topic = topic.value.name;
  damage.node.text = fmt::format(
      "{}-{} can be given no leader: its metadata node {} {}; {}, or delete the topic",
      topic.value.name, partition, path, node ? "does not parse" : "is missing", kRestore);
  if (node) damage.value = node->value;
  return damage;
}

Damage damaged_deletion(const std::string& path, std::string value) {
  Damage damage;
  damage.node.path = path;
  damage.node.text = fmt::format(
      "files of a deleted topic are not removed: its metadata node {} does not parse; {}, or "
      "remove "
      "it and the files by hand",
      path, kRestore);
  damage.value = std::move(value);
  return damage;
}

/// The topics that the children of a folder are named after.
std::vector<base::Uuid> to_uuids(const std::vector<std::string>& names, std::string_view folder,
                                 std::vector<Damage>& damage) {
  std::vector<base::Uuid> ids;
  for (const auto& name : names) {
    if (const auto id = base::Uuid::from_hex(name))
      ids.push_back(*id);
    else
      damage.push_back(stray(folder, name));
  }
  return ids;
}

std::optional<TopicTree> parse_topic(const std::string& name, const metadata::Node& node) {
  auto value = metadata::decode_topic(node.value);
  if (!value || value->name != name || value->id.is_zero()) return std::nullopt;
  return TopicTree{std::move(*value), node.version, {}, {}};
}

std::vector<std::string> state_paths(const TopicTree& topic) {
  std::vector<std::string> paths;
  for (const auto& partition : topic.value.partitions)
    paths.push_back(layout::partition_state({topic.value.id, partition.number}));
  return paths;
}

void add_states(TopicTree& topic, std::span<const std::optional<metadata::Node>> nodes,
                std::span<const std::string> paths, std::vector<Damage>& damage) {
  const auto all = std::exchange(topic.value.partitions, {});
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    auto state = nodes[i] ? metadata::decode_partition_state(nodes[i]->value)
                          : Result<metadata::PartitionStateValue>(metadata::MetadataErrc::damaged);
    if (!state) {
      damage.push_back(damaged_state(topic, paths[i], all[i].number, nodes[i]));
      topic.damaged.push_back(all[i]);
      continue;
    }
    topic.value.partitions.push_back(all[i]);
    topic.partitions.push_back(
        {{topic.value.id, all[i].number}, std::move(*state), nodes[i]->version});
  }
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
  if (!MQ_MUTANT("image_without_elr")) assignment.elr = node.state.elr;
  assignment.min_isr = node.state.min_isr;
  assignment.loss_epoch = node.state.loss_epoch;
  assignment.loss_start = node.state.loss_start;
  assignment.loss_end = node.state.loss_end;
  return assignment;
}

metadata::PartitionAssignment without_state(const base::Uuid& topic,
                                            const metadata::TopicPartition& partition) {
  metadata::PartitionAssignment assignment;
  assignment.id = {topic, partition.number};
  assignment.replicas = partition.replicas;
  return assignment;
}

std::vector<std::string> topic_names(const std::vector<std::string>& nodes,
                                     std::vector<Damage>& damage) {
  std::vector<std::string> names;
  for (const auto& node : nodes) {
    if (auto name = layout::unescape_name(node))
      names.push_back(std::move(*name));
    else
      damage.push_back(stray(layout::kTopics, node));
  }
  return names;
}

asio::awaitable<Result<std::vector<std::string>>> children_of(metadata::MetadataStore& store,
                                                              std::string_view folder) {
  auto names = co_await store.children(std::string(folder));
  if (!names && names.error() == make_error_code(metadata::MetadataErrc::not_found))
    co_return make_error_code(ControllerErrc::damaged_metadata);
  co_return std::move(names);
}

asio::awaitable<Result<void>> load_topic_nodes(metadata::MetadataStore& store, ClusterTree& tree) {
  const auto children = co_await children_of(store, layout::kTopics);
  if (!children) co_return children.error();
  const auto names = topic_names(*children, tree.damage);
  std::vector<std::string> paths;
  paths.reserve(names.size());
  for (const auto& name : names) paths.push_back(layout::topic(name));
  const auto nodes = co_await store.get_many(paths);
  if (!nodes) co_return nodes.error();
  for (std::size_t i = 0; i < nodes->size(); ++i) {
    const auto& node = (*nodes)[i];
    if (!node) continue;  // a write of the controller before came in between
    if (auto topic = parse_topic(names[i], *node)) {
      tree.topics.push_back(std::move(*topic));
    } else {
      tree.damage.push_back(damaged_topic(names[i], node->value));
      tree.complete = false;
    }
  }
  co_return Result<void>();
}

asio::awaitable<Result<void>> load_states(metadata::MetadataStore& store, ClusterTree& tree) {
  std::vector<std::string> paths;
  for (const auto& topic : tree.topics)
    std::ranges::move(state_paths(topic), std::back_inserter(paths));
  const auto states = co_await store.get_many(paths);
  if (!states) co_return states.error();
  std::size_t done = 0;
  for (auto& topic : tree.topics) {
    const auto count = topic.value.partitions.size();
    add_states(topic, std::span(*states).subspan(done, count),
               std::span(paths).subspan(done, count), tree.damage);
    done += count;
  }
  co_return Result<void>();
}

asio::awaitable<Result<void>> load_deleting(metadata::MetadataStore& store, ClusterTree& tree) {
  const auto names = co_await children_of(store, layout::kDeleting);
  if (!names) co_return names.error();
  const auto ids = to_uuids(*names, layout::kDeleting, tree.damage);
  std::vector<std::string> paths;
  paths.reserve(ids.size());
  for (const auto& id : ids) paths.push_back(layout::deleting(id));
  const auto nodes = co_await store.get_many(paths);
  if (!nodes) co_return nodes.error();
  for (std::size_t i = 0; i < nodes->size(); ++i) {
    const auto& node = (*nodes)[i];
    if (!node) continue;
    auto topic = metadata::decode_topic(node->value);
    if (topic && topic->id == ids[i]) {
      tree.deleting.push_back(std::move(*topic));
    } else {
      tree.damage.push_back(damaged_deletion(paths[i], node->value));
      tree.complete = false;
    }
  }
  co_return Result<void>();
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

metadata::TopicValue whole_value(const TopicTree& topic) {
  auto value = topic.value;
  value.partitions.insert(value.partitions.end(), topic.damaged.begin(), topic.damaged.end());
  std::ranges::sort(value.partitions, {}, &metadata::TopicPartition::number);
  return value;
}

asio::awaitable<Result<ClusterTree>> load_tree(metadata::MetadataStore& store) {
  ClusterTree tree;
  MQ_CO_TRY_VOID(co_await load_topic_nodes(store, tree));
  MQ_CO_TRY_VOID(co_await load_states(store, tree));
  MQ_CO_TRY_VOID(co_await load_deleting(store, tree));
  co_return std::move(tree);
}

asio::awaitable<Result<bool>> is_changed(metadata::MetadataStore& store,
                                         const std::vector<Damage>& damage) {
  std::vector<std::string> paths;
  paths.reserve(damage.size());
  for (const auto& one : damage) paths.push_back(one.node.path);
  const auto nodes = co_await store.get_many(std::move(paths));
  if (!nodes) co_return Result<bool>(boost::system::in_place_error, nodes.error());
  bool changed = false;
  for (std::size_t i = 0; i < damage.size(); ++i) {
    const auto& node = (*nodes)[i];
    const bool was_there = !damage[i].read || damage[i].value.has_value();
    changed = changed || node.has_value() != was_there ||
              (damage[i].read && node && node->value != damage[i].value);
  }
  co_return changed;
}

asio::awaitable<Result<std::vector<base::Uuid>>> list_state(metadata::MetadataStore& store) {
  const auto names = co_await children_of(store, layout::kState);
  if (!names) co_return names.error();
  std::vector<Damage> damage;
  auto ids = to_uuids(*names, layout::kState, damage);
  for (const auto& one : damage) base::log_warning("controller", "{}", one.node.text);
  co_return std::move(ids);
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
  if (!info.partitions.empty()) info.settings.min_isr = info.partitions.front().min_isr;
  for (const auto& partition : topic.damaged)
    info.partitions.push_back(without_state(info.id, partition));
  if (!topic.damaged.empty())
    std::ranges::sort(info.partitions, {}, [](const auto& one) { return one.id.partition; });
  return info;
}

}  // namespace mq::controller
