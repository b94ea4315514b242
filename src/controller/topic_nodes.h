#pragma once

#include "controller/cluster_tree.h"
#include "controller/node_writer.h"

namespace mq::controller {

/// The steps of which making and deleting a topic consist, as changes of the metadata (MET-2: a
/// topic is there once make_real() has taken effect and gone once move_to_deleting() has). Each
/// step is definite but for outcome_unknown.
class TopicNodes {
 public:
  TopicNodes(metadata::MetadataStore& store, NodeWriter& writer) : store_(store), writer_(writer) {}

  /// Makes the state nodes of a topic that is not there yet; fills in tags and versions.
  asio::awaitable<Result<void>> prepare(TopicTree& topic);
  /// Makes /topics/<name>.
  asio::awaitable<Result<void>> make_real(TopicTree& topic);
  /// One multi: makes /deleting/<uuid>, removes /topics/<name>.
  asio::awaitable<Result<void>> move_to_deleting(TopicTree topic);
  /// Removes all state nodes of the topic, as many as there are.
  asio::awaitable<Result<void>> sweep_state(base::Uuid topic);
  /// Removes /deleting/<uuid>, last of all.
  asio::awaitable<Result<void>> forget(base::Uuid topic);

 private:
  asio::awaitable<Result<void>> remove_states(base::Uuid topic, std::vector<std::string> names);
  asio::awaitable<Result<void>> remove_if_there(std::string path);

  metadata::MetadataStore& store_;
  NodeWriter& writer_;
};

}  // namespace mq::controller
