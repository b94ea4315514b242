#include "controller/registration.h"

#include <algorithm>

#include "base/log.h"
#include "controller/error.h"
#include "metadata/znode_layout.h"

namespace mq::controller {
namespace {

namespace layout = metadata::layout;
using metadata::MetadataErrc;
using metadata::Operation;

/// What one multi may still take.
class Room {
 public:
  bool take(const std::string& path, const std::string& value) {
    const std::size_t bytes = path.size() + value.size();
    if (operations_ == kOperationsPerMulti || bytes_ + bytes > metadata::kMultiBytesMax / 2)
      return false;
    ++operations_;
    bytes_ += bytes;
    return true;
  }

 private:
  std::size_t operations_ = 0;
  std::size_t bytes_ = 0;
};

/// Adds sets of the partitions' states from `first` on while there is room, and returns the first
/// that is left.
std::size_t add_sets(std::vector<Operation>& operations, Room& room,
                     const std::vector<PartitionNode*>& partitions, std::size_t first,
                     metadata::WriterTag tag) {
  while (first < partitions.size()) {
    PartitionNode& partition = *partitions[first];
    partition.state.writer = tag;
    auto path = layout::partition_state(partition.id);
    auto value = metadata::encode(partition.state);
    if (!room.take(path, value)) break;
    operations.emplace_back(
        metadata::SetValue(std::move(path), std::move(value), partition.version));
    ++first;
  }
  return first;
}

/// Each set raised its node's version by one.
void confirm(const std::vector<PartitionNode*>& partitions, std::size_t first, std::size_t end) {
  for (; first < end; ++first) ++partitions[first]->version;
}

Error refusal(const Result<metadata::MultiResult>& result) {
  return result ? result->first_error() : result.error();
}

/// Gives every partition that this broker keeps a new start of its leader.
std::vector<PartitionNode*> start_leaders(std::vector<TopicTree>& topics, model::BrokerId broker,
                                          model::BrokerEpoch epoch) {
  std::vector<PartitionNode*> changed;
  for (auto& topic : topics) {
    for (std::size_t i = 0; i < topic.partitions.size(); ++i) {
      if (std::ranges::count(topic.value.partitions[i].replicas, broker) == 0) continue;
      auto& state = topic.partitions[i].state;
      state.leader = broker;
      state.leader_epoch = model::LeaderEpoch(state.leader_epoch.value() + 1);
      state.isr = {{broker, epoch}};
      changed.push_back(&topic.partitions[i]);
    }
  }
  return changed;
}

asio::awaitable<Result<void>> check_not_live(metadata::MetadataStore& store,
                                             model::BrokerId broker) {
  const auto live = co_await store.get(layout::broker_live(broker));
  if (live && live->ephemeral_owner != store.session())
    co_return make_error_code(ControllerErrc::broker_id_in_use);
  if (!live && live.error() != make_error_code(MetadataErrc::not_found)) co_return live.error();
  co_return Result<void>();
}

}  // namespace

asio::awaitable<Result<void>> make_folders(metadata::MetadataStore& store) {
  const auto nodes = co_await store.get_many(layout::folders());
  if (!nodes) co_return nodes.error();
  for (std::size_t i = 0; i < nodes->size(); ++i) {
    if ((*nodes)[i]) continue;
    const auto made = co_await store.create(layout::folders()[i], "");
    if (made || made.error() == make_error_code(MetadataErrc::already_exists)) continue;
    co_return made.error();
  }
  co_return Result<void>();
}

asio::awaitable<Result<model::BrokerEpoch>> register_broker(metadata::MetadataStore& store,
                                                            NodeWriter& writer,
                                                            const ControllerConfig& config,
                                                            std::vector<TopicTree>& topics) {
  const auto epoch_path = layout::broker_epoch(config.broker);
  const auto before = co_await store.get(epoch_path);
  if (!before && before.error() != make_error_code(MetadataErrc::not_found))
    co_return before.error();
  MQ_CO_TRY_VOID(co_await check_not_live(store, config.broker));

  const std::int32_t epoch = before ? before->version + 1 : 0;
  const auto partitions = start_leaders(topics, config.broker, model::BrokerEpoch(epoch));
  const auto tag = writer.next_tag();
  const metadata::BrokerEpochValue epoch_value{tag, config.incarnation, config.disks};
  const metadata::BrokerLiveValue live_value{tag, config.incarnation, config.advertised};

  // MET-3: who leads, and under which epochs, changes in one step.
  std::vector<Operation> operations;
  if (before)
    operations.emplace_back(
        metadata::SetValue(epoch_path, metadata::encode(epoch_value), before->version));
  else
    operations.emplace_back(metadata::Create(epoch_path, metadata::encode(epoch_value)));
  operations.emplace_back(metadata::Create(layout::broker_live(config.broker),
                                           metadata::encode(live_value),
                                           metadata::CreateMode::ephemeral));
  Room room;
  const auto rest = add_sets(operations, room, partitions, 0, tag);
  const auto result = co_await writer.commit(std::move(operations), epoch_path, tag);
  if (const auto error = refusal(result)) co_return error;
  confirm(partitions, 0, rest);

  std::vector<PartitionNode*> left(partitions.begin() + static_cast<std::ptrdiff_t>(rest),
                                   partitions.end());
  const metadata::Check fence(epoch_path, epoch);
  MQ_CO_TRY_VOID(co_await write_states(writer, std::move(left), fence));
  co_return model::BrokerEpoch(epoch);
}

asio::awaitable<Result<void>> write_states(NodeWriter& writer,
                                           std::vector<PartitionNode*> partitions,
                                           metadata::Check fence) {
  std::size_t done = 0;
  while (done < partitions.size()) {
    const auto tag = writer.next_tag();
    std::vector<Operation> operations;
    operations.emplace_back(fence);
    Room room;
    const auto next = add_sets(operations, room, partitions, done, tag);
    auto witness = layout::partition_state(partitions[done]->id);
    const auto result = co_await writer.commit(std::move(operations), std::move(witness), tag);
    if (const auto error = refusal(result)) co_return error;
    confirm(partitions, done, next);
    done = next;
  }
  co_return Result<void>();
}

}  // namespace mq::controller
