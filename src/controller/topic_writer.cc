#include "controller/topic_writer.h"

#include "base/mutants.h"
#include "controller/error.h"
#include "controller/multi_room.h"
#include "metadata/znode_layout.h"

namespace mq::controller {
namespace {

namespace layout = metadata::layout;
using metadata::MetadataErrc;
using metadata::Operation;

constexpr int kSweepTries = 3;

/// All nodes of the topic, or nothing if one multi does not hold them.
std::optional<std::vector<Operation>> whole_topic(TopicTree& topic, metadata::WriterTag tag) {
  MultiRoom room;
  topic.value.writer = tag;
  std::vector<Operation> operations;
  const auto add = [&](std::string path, std::string value) {
    const bool fits = room.take(path, value);
    operations.emplace_back(metadata::Create(std::move(path), std::move(value)));
    return fits;
  };
  bool fits = add(layout::topic_state(topic.value.id), "");
  for (auto& partition : topic.partitions) {
    partition.state.writer = tag;
    partition.version = 0;
    fits = fits && add(layout::partition_state(partition.id), metadata::encode(partition.state));
  }
  fits = fits && add(layout::topic(topic.value.name), metadata::encode(topic.value));
  if (!fits) return std::nullopt;
  return operations;
}

/// Of the registrations of `members`, each once. False: there is no room for more.
bool add_checks(const std::vector<model::IsrMember>& members, MultiRoom& room,
                std::set<std::string>& checked, std::vector<Operation>& operations) {
  if (MQ_MUTANT("isr_member_unchecked")) return true;
  for (const auto& member : members) {
    auto path = layout::broker_epoch(member.broker);
    if (!checked.insert(path).second) continue;
    if (!room.take(path, "")) return false;
    const auto version = static_cast<std::int32_t>(member.epoch.value());
    operations.emplace_back(metadata::Check(std::move(path), version));
  }
  return true;
}

}  // namespace

asio::awaitable<Result<void>> TopicWriter::create(TopicTree& topic) {
  const auto tag = writer_.next_tag();
  auto whole = whole_topic(topic, tag);
  if (!whole) co_return co_await create_in_steps(topic);
  topic.version = 0;
  auto witness = layout::topic(topic.value.name);
  const auto made = co_await writer_.commit(std::move(*whole), std::move(witness), tag);
  if (const auto error = refusal(made)) co_return error;
  co_return Result<void>();
}

asio::awaitable<Result<void>> TopicWriter::create_in_steps(TopicTree& topic) {
  std::vector<Operation> operations;
  operations.emplace_back(metadata::Create(layout::topic_state(topic.value.id), ""));
  std::size_t done = 0;
  while (done < topic.partitions.size()) {
    const auto added = co_await add_some(topic.partitions, done, std::move(operations));
    operations.clear();
    // Whatever became of it, without /topics/<name> it is no topic.
    if (!added && added.error() == make_error_code(MetadataErrc::outcome_unknown))
      co_return make_error_code(MetadataErrc::unavailable);
    if (!added) co_return added.error();
    done = *added;
  }
  topic.value.writer = writer_.next_tag();
  topic.version = 0;
  auto path = layout::topic(topic.value.name);
  operations.emplace_back(metadata::Create(path, metadata::encode(topic.value)));
  const auto made =
      co_await writer_.commit(std::move(operations), std::move(path), topic.value.writer);
  if (const auto error = refusal(made)) co_return error;
  co_return Result<void>();
}

asio::awaitable<Result<void>> TopicWriter::add_states(std::vector<PartitionNode>& partitions) {
  std::size_t done = 0;
  while (done < partitions.size()) {
    std::vector<Operation> operations;
    const auto added = co_await add_some(partitions, done, std::move(operations));
    if (!added) co_return added.error();
    done = *added;
  }
  co_return Result<void>();
}

asio::awaitable<Result<std::size_t>> TopicWriter::add_some(std::vector<PartitionNode>& partitions,
                                                           std::size_t first,
                                                           std::vector<Operation> operations) {
  const auto tag = writer_.next_tag();
  MultiRoom room;
  std::size_t end = first;
  for (; end < partitions.size(); ++end) {
    auto& partition = partitions[end];
    partition.state.writer = tag;
    partition.version = 0;
    auto path = layout::partition_state(partition.id);
    auto value = metadata::encode(partition.state);
    if (!room.take(path, value)) break;
    operations.emplace_back(metadata::Create(std::move(path), std::move(value)));
  }
  auto witness = layout::partition_state(partitions[first].id);
  const auto made = co_await writer_.commit(std::move(operations), std::move(witness), tag);
  if (const auto error = refusal(made)) co_return error;
  co_return end;
}

asio::awaitable<Result<void>> TopicWriter::set_topic(TopicTree& topic) {
  topic.value.writer = writer_.next_tag();
  auto path = layout::topic(topic.value.name);
  std::vector<Operation> operations;
  operations.emplace_back(
      metadata::SetValue(path, metadata::encode(whole_value(topic)), topic.version));
  const auto set =
      co_await writer_.commit(std::move(operations), std::move(path), topic.value.writer);
  if (const auto error = refusal(set)) co_return error;
  ++topic.version;
  co_return Result<void>();
}

asio::awaitable<Result<void>> TopicWriter::move_to_deleting(TopicTree topic) {
  topic.value.writer = writer_.next_tag();
  auto path = layout::deleting(topic.value.id);
  std::vector<Operation> operations;
  operations.emplace_back(metadata::Create(path, metadata::encode(whole_value(topic))));
  operations.emplace_back(metadata::Remove(layout::topic(topic.value.name), topic.version));
  const auto moved =
      co_await writer_.commit(std::move(operations), std::move(path), topic.value.writer);
  if (const auto error = refusal(moved)) co_return error;
  co_return Result<void>();
}

asio::awaitable<Result<std::size_t>> TopicWriter::write_states(
    const std::vector<StateChange>& changes, std::size_t first) {
  const auto tag = writer_.next_tag();
  MultiRoom room;
  std::set<std::string> checked;
  std::vector<Operation> operations;
  std::size_t end = first;
  for (; end < changes.size(); ++end) {
    if (!add_checks(changes[end].added, room, checked, operations)) break;
    auto state = changes[end].state;
    state.writer = tag;
    auto path = layout::partition_state(changes[end].id);
    auto value = metadata::encode(state);
    if (!room.take(path, value)) break;
    operations.emplace_back(
        metadata::SetValue(std::move(path), std::move(value), changes[end].version));
  }
  auto witness = layout::partition_state(changes[first].id);
  const auto written = co_await writer_.commit(std::move(operations), std::move(witness), tag);
  if (const auto error = refusal(written)) co_return error;
  co_return end;
}

// Removing what is there is safe to repeat, so a lost answer or a node that is gone already only
// means to look again.

asio::awaitable<Result<void>> TopicWriter::sweep_states(base::Uuid topic) {
  std::set<std::int32_t> none;
  co_return co_await sweep_states_but(topic, std::move(none));
}

asio::awaitable<Result<void>> TopicWriter::sweep_states_but(base::Uuid topic,
                                                            std::set<std::int32_t> keep) {
  const auto folder = layout::topic_state(topic);
  Error error;
  for (int tries = 0; tries < kSweepTries; ++tries) {
    const auto names = co_await store_.children(folder);
    if (!names && names.error() == make_error_code(MetadataErrc::not_found))
      co_return Result<void>();
    if (!names) co_return names.error();
    std::vector<std::string> paths;
    for (const auto& name : *names) {
      const auto number = layout::parse_partition(name);
      if (!number || !keep.contains(*number)) paths.push_back(fmt::format("{}/{}", folder, name));
    }
    const auto removed = co_await remove_all(std::move(paths));
    if (removed && !keep.empty()) co_return Result<void>();
    if (removed) co_return co_await remove_if_there(folder);
    error = removed.error();
    if (error == make_error_code(ControllerErrc::not_controller)) break;
  }
  co_return error;
}

asio::awaitable<Result<void>> TopicWriter::remove_all(std::vector<std::string> paths) {
  for (std::size_t done = 0; done < paths.size();) {
    std::vector<Operation> operations;
    MultiRoom room;
    for (; done < paths.size() && room.take(paths[done], ""); ++done)
      operations.emplace_back(metadata::Remove(paths[done], metadata::kAnyVersion));
    const auto removed = co_await writer_.remove(std::move(operations));
    if (const auto error = refusal(removed)) co_return error;
  }
  co_return Result<void>();
}

asio::awaitable<Result<void>> TopicWriter::forget(base::Uuid topic) {
  co_return co_await remove_if_there(layout::deleting(topic));
}

asio::awaitable<Result<void>> TopicWriter::remove_if_there(std::string path) {
  Error error;
  for (int tries = 0; tries < kSweepTries; ++tries) {
    std::vector<Operation> operations;
    operations.emplace_back(metadata::Remove(path, metadata::kAnyVersion));
    const auto removed = co_await writer_.remove(std::move(operations));
    error = refusal(removed);
    if (!error || error == make_error_code(MetadataErrc::not_found)) co_return Result<void>();
    if (error != make_error_code(MetadataErrc::outcome_unknown)) break;
  }
  co_return error;
}

}  // namespace mq::controller
