#pragma once

#include <set>
#include <vector>

#include "controller/cluster_tree.h"
#include "controller/fenced_writer.h"

namespace mq::controller {

/// The next state of one partition, to be written at the version that its node has.
struct StateChange {
  model::PartitionId id;
  metadata::PartitionStateValue state;
  std::int32_t version = -1;
  /// Still have to be registered as they are here, or nothing is written.
  std::vector<model::IsrMember> added{};
};

/// The steps of which changes of topics consist (MET-2: a topic or a partition is there once the
/// topic node names it, and gone once it does not). Each is definite but for outcome_unknown, and
/// fenced: not_controller says that nothing was written.
class TopicWriter {
 public:
  TopicWriter(metadata::MetadataStore& store, FencedWriter& writer)
      : store_(store), writer_(writer) {}

  /// State nodes, then /topics/<name>; in one multi where that holds them. Fills in tags and
  /// versions. Without success the topic is not there, unless the error is outcome_unknown, but
  /// state nodes may be.
  asio::awaitable<Result<void>> create(TopicTree& topic);
  /// State nodes of partitions that the topic node does not name yet; the folder is there.
  asio::awaitable<Result<void>> add_states(std::vector<PartitionNode>& partitions);
  /// Sets /topics/<name> to topic.value at topic.version, which rises.
  asio::awaitable<Result<void>> set_topic(TopicTree& topic);
  /// One multi: makes /deleting/<uuid>, removes /topics/<name>.
  asio::awaitable<Result<void>> move_to_deleting(TopicTree topic);
  /// Removes the state nodes of all partitions, and their folder; or of all but those in `keep`,
  /// which is not empty.
  asio::awaitable<Result<void>> sweep_states(base::Uuid topic);
  asio::awaitable<Result<void>> sweep_states_but(base::Uuid topic, std::set<std::int32_t> keep);
  /// Removes /deleting/<uuid>, last of all.
  asio::awaitable<Result<void>> forget(base::Uuid topic);
  /// Writes as many changes, from `first` on, as one multi holds; the end of what was written.
  asio::awaitable<Result<std::size_t>> write_states(const std::vector<StateChange>& changes,
                                                    std::size_t first);

 private:
  asio::awaitable<Result<std::size_t>> add_some(std::vector<PartitionNode>& partitions,
                                                std::size_t first,
                                                std::vector<metadata::Operation> operations);
  asio::awaitable<Result<void>> create_in_steps(TopicTree& topic);
  asio::awaitable<Result<void>> remove_all(std::vector<std::string> paths);
  asio::awaitable<Result<void>> remove_if_there(std::string path);

  metadata::MetadataStore& store_;
  FencedWriter& writer_;
};

}  // namespace mq::controller
