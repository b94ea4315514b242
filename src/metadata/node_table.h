#pragma once

#include <optional>
#include <string>
#include <vector>

#include "metadata/store.h"

namespace mq::metadata {

/// The rows of a store within one transaction, for backends that keep the tree themselves. An error
/// of any call means that the backend failed and the transaction is to be undone.
class NodeTable {
 public:
  virtual ~NodeTable() = default;
  virtual Result<std::optional<Node>> find(const std::string& path) = 0;
  virtual Result<bool> has_children(const std::string& path) = 0;
  virtual Result<void> insert(const std::string& path, const Node& node) = 0;
  virtual Result<void> update(const std::string& path, const Node& node) = 0;
  virtual Result<void> erase(const std::string& path) = 0;
};

/// Paths and sizes of a multi, before anything is tried: invalid_path, too_large.
Error check_operations(const std::vector<Operation>& operations);

/// The meaning of the operations, the same for every backend: runs them in order and stops at the
/// first that fails. If the result is not applied() the caller undoes what was done in `table`.
Result<MultiResult> apply_operations(NodeTable& table, const std::vector<Operation>& operations,
                                     std::uint64_t session);

}  // namespace mq::metadata
