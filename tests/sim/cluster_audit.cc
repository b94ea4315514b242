#include "sim/cluster_audit.h"

#include <algorithm>

#include "broker/worker.h"
#include "controller/cluster_tree.h"
#include "metadata/node_values.h"
#include "metadata/znode_layout.h"

namespace mq::sim {
namespace {

namespace layout = metadata::layout;

/// No session of a store has this number.
constexpr std::uint64_t kAuditor = ~std::uint64_t{0};

const std::string& path_of(const metadata::Operation& operation) {
  return std::visit([](const auto& one) -> const std::string& { return one.path; }, operation);
}

bool below(std::string_view path, std::string_view folder) {
  return path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/';
}

/// Of the path of a partition's state.
std::optional<model::PartitionId> partition_of(std::string_view path) {
  const auto slash = path.rfind('/');
  if (slash <= layout::kState.size()) return std::nullopt;
  const auto topic = base::Uuid::from_hex(path.substr(0, slash).substr(layout::kState.size() + 1));
  const auto number = layout::parse_partition(path.substr(slash + 1));
  if (!topic || !number) return std::nullopt;
  return model::PartitionId{*topic, *number};
}

bool same(const metadata::PartitionAssignment& assignment,
          const metadata::PartitionStateValue& value) {
  return value.leader == assignment.leader && value.leader_epoch == assignment.leader_epoch &&
         value.isr == assignment.isr && value.elr == assignment.elr &&
         value.min_isr == assignment.min_isr && value.loss_epoch == assignment.loss_epoch &&
         value.loss_start == assignment.loss_start && value.loss_end == assignment.loss_end;
}

/// What only the controller writes. Folders are made by whoever comes first.
bool is_the_controllers(std::string_view path) {
  return below(path, layout::kTopics) || below(path, layout::kState) ||
         below(path, layout::kDeleting);
}

std::string text_of(const std::vector<model::IsrMember>& members) {
  std::string text;
  for (const auto& member : members) text += fmt::format(" {}@{}", member.broker, member.epoch);
  return text;
}

std::string text_of(const metadata::TopicInfo& topic) {
  auto text = fmt::format("{} is {}:", topic.name, topic.id.hex());
  for (const auto& [name, value] : topic.overrides) text += fmt::format(" {}={}", name, value);
  for (const auto& one : topic.partitions) {
    text += fmt::format("; {} of", one.id.partition);
    for (const auto& replica : one.replicas) text += fmt::format(" {}", replica);
    text += fmt::format(" version {} led by {} in {}, ISR{} of {}, ELR{}, loss {} {} {}",
                        one.version, one.leader, one.leader_epoch, text_of(one.isr), one.min_isr,
                        text_of(one.elr), one.loss_epoch, one.loss_start, one.loss_end);
  }
  return text;
}

std::vector<std::string> topics_of(const controller::ClusterTree& tree) {
  std::vector<std::string> topics;
  for (const auto& topic : tree.topics) topics.push_back(text_of(controller::to_info(topic, {})));
  std::ranges::sort(topics);
  return topics;
}

}  // namespace

ClusterAudit::ClusterAudit(BrokerMachine& world, const Nodes& nodes)
    : world_(world), nodes_(nodes), leaderships_(nodes.size()) {
  auto& peer = world_.metadata->peers[kAuditor];
  peer.lost = [] {};
  peer.connected = [] {};
  peer.changed = [this](const auto& operations) { world_.checked([&] { wrote(operations); }); };
}

void ClusterAudit::wrote(const std::vector<metadata::Operation>& operations) {
  ++writes_;
  check_fence(operations);
  for (const auto& operation : operations) {
    const auto& path = path_of(operation);
    if (std::holds_alternative<metadata::Check>(operation)) continue;
    if (path == layout::kControllerEpoch) {
      const auto epoch = world_.metadata->nodes.at(path).version;
      require(epoch > controller_epoch_, "C1: the controller epoch went from {} to {}",
              controller_epoch_, epoch);
      controller_epoch_ = epoch;
    }
    if (below(path, layout::kState)) check_state(path);
    if (below(path, layout::kTopics) || below(path, layout::kDeleting))
      world_.simulator.trace(
          fmt::format("the store: {} {}", path,
                      world_.metadata->nodes.contains(path) ? "is written" : "is removed"));
  }
}

/// C1: a write of the controller names the epoch of the present one.
void ClusterAudit::check_fence(const std::vector<metadata::Operation>& operations) const {
  const auto fenced = [&](const metadata::Operation& operation) {
    const auto* const check = std::get_if<metadata::Check>(&operation);
    return check && check->path == layout::kControllerEpoch && check->version == controller_epoch_;
  };
  const auto written = std::ranges::find_if(operations, [](const auto& operation) {
    return !std::holds_alternative<metadata::Check>(operation) &&
           is_the_controllers(path_of(operation));
  });
  require(written == operations.end() || std::ranges::any_of(operations, fenced),
          "C1: {} was written without the check of controller epoch {}",
          written == operations.end() ? "" : path_of(*written), controller_epoch_);
}

/// C4: a leader epoch never falls, and rises with each leadership.
void ClusterAudit::check_state(const std::string& path) {
  const auto node = world_.metadata->nodes.find(path);
  const auto id = partition_of(path);
  if (node == world_.metadata->nodes.end()) {
    partitions_.erase(path);
    if (id) replicas_.wrote_state(*id, std::nullopt);
    return;
  }
  const auto value = metadata::decode_partition_state(node->second.value);
  if (!value || !id) return;  // the folder of a topic
  replicas_.wrote_state(*id, *value);
  PartitionSeen now{value->leader_epoch.value(), value->leader.value(), -1};
  for (const auto& member : value->isr) {
    if (member.broker == value->leader) now.broker_epoch = member.epoch.value();
  }
  auto& before = partitions_[path];
  require(now.leader_epoch >= before.leader_epoch, "C4: {}: the leader epoch fell from {} to {}",
          path, before.leader_epoch, now.leader_epoch);
  const bool another = now.leader != before.leader || now.broker_epoch != before.broker_epoch;
  require(now.leader < 0 || !another || now.leader_epoch > before.leader_epoch ||
              before.leader_epoch < 0,
          "C4: {}: broker {} leads under broker epoch {} in the leader epoch {} of another", path,
          now.leader, now.broker_epoch, now.leader_epoch);
  before = now;
}

void ClusterAudit::observe() {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    look_at_image(*nodes_[i]);
    if (nodes_[i]->broker()) look_at_logs(*nodes_[i], leaderships_[i]);
  }
  replicas_.observe();
}

/// An image shows nothing that the store has not confirmed, and none is older than one before it.
void ClusterAudit::look_at_image(const ClusterNode& node) {
  auto image = node.image();
  auto& seen = images_[node.id()];
  if (!image) {
    seen = nullptr;
    return;
  }
  if (image == seen) return;
  require(!seen || image->version() > seen->version(), "C2: {}: image {} came after {}",
          node.name(), image->version(), seen ? seen->version() : 0);
  for (const auto& [name, topic] : image->topics()) {
    if (seen && seen->find_topic(topic->id) == topic) continue;
    for (const auto& assignment : topic->partitions) {
      const auto stored = world_.metadata->nodes.find(layout::partition_state(assignment.id));
      if (stored == world_.metadata->nodes.end()) continue;  // deleted meanwhile
      require(assignment.version.value() <= stored->second.version,
              "rule 5: {}: the image has version {} of {}-{}, the store {}", node.name(),
              assignment.version, name, assignment.id.partition, stored->second.version);
      const auto value = metadata::decode_partition_state(stored->second.value);
      require(assignment.version.value() < stored->second.version ||
                  (value && same(assignment, *value)),
              "C3: {}: {}-{} is not as the store has it", node.name(), name,
              assignment.id.partition);
    }
  }
  seen = std::move(image);
}

/// R2: in one leader epoch of a partition one process appends.
void ClusterAudit::look_at_logs(const ClusterNode& node, std::uint64_t& looked_at) {
  const auto& core = node.broker()->core();
  std::uint64_t sum = node.lives();
  for (const auto& worker : core.workers) {
    for (const auto& [id, partition] : worker->partitions().all())
      sum = sum * 31 + static_cast<std::uint64_t>(partition->leader_epoch().value()) + 2;
  }
  if (std::exchange(looked_at, sum) == sum) return;
  for (const auto& worker : core.workers) {
    for (const auto& [id, partition] : worker->partitions().all()) {
      if (partition->failure()) continue;
      const Writer writer{node.id(), node.lives()};
      const auto epoch = partition->leader_epoch().value();
      const auto [known, added] = writers_.emplace(std::pair(id, epoch), writer);
      require(added || known->second == writer, "R2: {} is led in epoch {} by {} and by broker-{}",
              id.text(), epoch, node.name(), known->second.node);
    }
  }
}

asio::awaitable<void> ClusterAudit::rebuild() {
  metadata::MemoryStoreOptions options;
  options.single_process = false;
  const auto store = metadata::open_memory_store(world_.metadata, world_.runtime, options);
  const auto writes = writes_;
  const auto first = co_await controller::load_tree(*store);
  const auto second = co_await controller::load_tree(*store);
  co_await store->close();
  const auto* const node = leading_node(nodes_);
  const auto image = node ? node->controller()->image() : nullptr;
  if (!image || writes_ != writes) co_return;
  require(first && second, "C3: the tree cannot be loaded");
  const auto stored = topics_of(*first);
  require(stored == topics_of(*second), "C3: the tree is another one when it is loaded again");
  std::vector<std::string> known;
  for (const auto& [name, topic] : image->topics()) known.push_back(text_of(*topic));
  std::ranges::sort(known);
  for (std::size_t i = 0; i < std::max(stored.size(), known.size()); ++i) {
    const auto rebuilt = i < stored.size() ? stored[i] : "";
    const auto before = i < known.size() ? known[i] : "";
    require(rebuilt == before, "C3: the controller knows \"{}\", the next one would \"{}\"", before,
            rebuilt);
  }
}

std::string ClusterAudit::disagreement(const metadata::ClusterImage& image) const {
  for (const auto& [name, topic] : image.topics()) {
    for (const auto& assignment : topic->partitions) {
      const auto stored = world_.metadata->nodes.find(layout::partition_state(assignment.id));
      if (stored == world_.metadata->nodes.end())
        return fmt::format("{}-{} is not in the store", name, assignment.id.partition);
      if (stored->second.version != assignment.version.value())
        return fmt::format("{}-{} has version {}, in the store {}", name, assignment.id.partition,
                           assignment.version, stored->second.version);
      if (assignment.leader == model::BrokerId())
        return fmt::format("{}-{} has no leader", name, assignment.id.partition);
    }
  }
  const auto stored_topics = std::ranges::count_if(
      world_.metadata->nodes, [](const auto& node) { return below(node.first, layout::kTopics); });
  if (static_cast<std::size_t>(stored_topics) == image.topics().size()) return {};
  return fmt::format("{} topics, in the store {}", image.topics().size(), stored_topics);
}

std::string ClusterAudit::disagreement() const {
  std::set<std::uint64_t> versions;
  for (const auto& node : nodes_) {
    const auto image = node->image();
    if (!image) return fmt::format("{} has no image", node->name());
    if (auto why = disagreement(*image); !why.empty())
      return fmt::format("{}: {}", node->name(), why);
    versions.insert(image->version());
  }
  if (versions.size() > 1) return "the images differ";
  const auto leaders =
      std::ranges::count_if(nodes_, [](const auto& node) { return node->controller() != nullptr; });
  return leaders == 1 ? "" : fmt::format("{} controllers", leaders);
}

}  // namespace mq::sim
