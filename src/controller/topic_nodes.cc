#include "controller/topic_nodes.h"

#include <algorithm>

#include "controller/registration.h"
#include "metadata/znode_layout.h"

namespace mq::controller {
namespace {

namespace layout = metadata::layout;
using metadata::MetadataErrc;
using metadata::Operation;

Error refusal(const Result<metadata::MultiResult>& result) {
  return result ? result->first_error() : result.error();
}

constexpr int kSweepTries = 3;

}  // namespace

asio::awaitable<Result<void>> TopicNodes::prepare(TopicTree& topic) {
  std::size_t done = 0;
  const std::size_t count = topic.partitions.size();
  while (done < count) {
    const auto tag = writer_.next_tag();
    std::vector<Operation> operations;
    if (done == 0)
      operations.emplace_back(metadata::Create(layout::topic_state(topic.value.id), ""));
    const auto end = std::min(count, done + kOperationsPerMulti);
    for (auto i = done; i < end; ++i) {
      auto& partition = topic.partitions[i];
      partition.state.writer = tag;
      partition.version = 0;
      operations.emplace_back(metadata::Create(layout::partition_state(partition.id),
                                               metadata::encode(partition.state)));
    }
    auto witness = layout::partition_state(topic.partitions[done].id);
    const auto result = co_await writer_.commit(std::move(operations), std::move(witness), tag);
    if (const auto error = refusal(result)) co_return error;
    done = end;
  }
  co_return Result<void>();
}

asio::awaitable<Result<void>> TopicNodes::make_real(TopicTree& topic) {
  topic.value.writer = writer_.next_tag();
  topic.version = 0;
  std::vector<Operation> operations;
  operations.emplace_back(
      metadata::Create(layout::topic(topic.value.name), metadata::encode(topic.value)));
  auto witness = layout::topic(topic.value.name);
  const auto result =
      co_await writer_.commit(std::move(operations), std::move(witness), topic.value.writer);
  if (const auto error = refusal(result)) co_return error;
  co_return Result<void>();
}

asio::awaitable<Result<void>> TopicNodes::move_to_deleting(TopicTree topic) {
  topic.value.writer = writer_.next_tag();
  const auto path = layout::deleting(topic.value.id);
  std::vector<Operation> operations;
  operations.emplace_back(metadata::Create(path, metadata::encode(topic.value)));
  operations.emplace_back(metadata::Remove(layout::topic(topic.value.name), topic.version));
  const auto result = co_await writer_.commit(std::move(operations), path, topic.value.writer);
  if (const auto error = refusal(result)) co_return error;
  co_return Result<void>();
}

asio::awaitable<Result<void>> TopicNodes::sweep_state(base::Uuid topic) {
  const auto folder = layout::topic_state(topic);
  Error error;
  // Removing what is there is safe to repeat, so a lost answer or a node that is gone already only
  // means to look again.
  for (int tries = 0; tries < kSweepTries; ++tries) {
    auto names = co_await store_.children(folder);
    if (!names && names.error() == make_error_code(MetadataErrc::not_found))
      co_return Result<void>();
    if (!names) co_return names.error();
    const auto removed = co_await remove_states(topic, std::move(*names));
    if (removed) co_return co_await remove_if_there(folder);
    error = removed.error();
  }
  co_return error;
}

asio::awaitable<Result<void>> TopicNodes::remove_states(base::Uuid topic,
                                                        std::vector<std::string> names) {
  const auto folder = layout::topic_state(topic);
  for (std::size_t done = 0; done < names.size();) {
    std::vector<Operation> operations;
    const auto end = std::min(names.size(), done + kOperationsPerMulti);
    for (; done < end; ++done)
      operations.emplace_back(metadata::Remove(folder + "/" + names[done], metadata::kAnyVersion));
    const auto result = co_await store_.multi(std::move(operations));
    if (const auto error = refusal(result)) co_return error;
  }
  co_return Result<void>();
}

asio::awaitable<Result<void>> TopicNodes::forget(base::Uuid topic) {
  co_return co_await remove_if_there(layout::deleting(topic));
}

asio::awaitable<Result<void>> TopicNodes::remove_if_there(std::string path) {
  auto removed = co_await store_.remove(path, metadata::kAnyVersion);
  if (!removed && removed.error() == make_error_code(MetadataErrc::outcome_unknown))
    removed = co_await store_.remove(path, metadata::kAnyVersion);
  if (!removed && removed.error() == make_error_code(MetadataErrc::not_found))
    co_return Result<void>();
  co_return removed;
}

}  // namespace mq::controller
