#include "metadata/node_table.h"

namespace mq::metadata {
namespace {

const std::string& path_of(const Operation& operation) {
  return std::visit([](const auto& op) -> const std::string& { return op.path; }, operation);
}

std::size_t value_bytes(const Operation& operation) {
  if (const auto* create = std::get_if<Create>(&operation)) return create->value.size();
  if (const auto* set = std::get_if<SetValue>(&operation)) return set->value.size();
  return 0;
}

bool version_matches(const Node& node, std::int32_t expected) {
  return expected == kAnyVersion || node.version == expected;
}

OperationResult refused(MetadataErrc code) { return OperationResult(make_error_code(code), -1); }

/// Runs one operation after the other on one table.
class Applier {
 public:
  Applier(NodeTable& table, std::uint64_t session) : table_(table), session_(session) {}

  Result<OperationResult> operator()(const Create& op) {
    MQ_TRY(const auto existing, table_.find(op.path));
    if (existing || op.path == "/") return refused(MetadataErrc::already_exists);
    const std::string parent(parent_path(op.path));
    if (parent != "/") {
      MQ_TRY(const auto above, table_.find(parent));
      if (!above) return refused(MetadataErrc::not_found);
      if (above->ephemeral_owner != 0) return refused(MetadataErrc::ephemeral_parent);
    }
    const Node made{op.value, 0, op.mode == CreateMode::ephemeral ? session_ : 0};
    MQ_TRY_VOID(table_.insert(op.path, made));
    return OperationResult(Error(), made.version);
  }

  Result<OperationResult> operator()(const SetValue& op) {
    MQ_TRY(auto node, table_.find(op.path));
    if (!node) return refused(MetadataErrc::not_found);
    if (!version_matches(*node, op.version)) return refused(MetadataErrc::bad_version);
    node->value = op.value;
    ++node->version;
    MQ_TRY_VOID(table_.update(op.path, *node));
    return OperationResult(Error(), node->version);
  }

  Result<OperationResult> operator()(const Remove& op) {
    MQ_TRY(const auto node, table_.find(op.path));
    if (!node) return refused(MetadataErrc::not_found);
    if (!version_matches(*node, op.version)) return refused(MetadataErrc::bad_version);
    MQ_TRY(const bool has_children, table_.has_children(op.path));
    if (has_children) return refused(MetadataErrc::not_empty);
    MQ_TRY_VOID(table_.erase(op.path));
    return OperationResult{};
  }

  Result<OperationResult> operator()(const Check& op) {
    MQ_TRY(const auto node, table_.find(op.path));
    if (!node) return refused(MetadataErrc::not_found);
    if (!version_matches(*node, op.version)) return refused(MetadataErrc::bad_version);
    return OperationResult{};
  }

 private:
  NodeTable& table_;
  std::uint64_t session_;
};

}  // namespace

Error check_operations(const std::vector<Operation>& operations) {
  std::size_t bytes = 0;
  for (const auto& operation : operations) {
    if (check_path(path_of(operation))) return MetadataErrc::invalid_path;
    if (value_bytes(operation) > kValueBytesMax) return MetadataErrc::too_large;
    bytes += path_of(operation).size() + value_bytes(operation);
  }
  if (bytes > kMultiBytesMax) return MetadataErrc::too_large;
  return {};
}

Result<MultiResult> apply_operations(NodeTable& table, const std::vector<Operation>& operations,
                                     std::uint64_t session) {
  Applier applier(table, session);
  MultiResult result;
  for (const auto& operation : operations) {
    MQ_TRY(const auto done, std::visit(applier, operation));
    if (done.error) {
      // MET-1: one refused operation refuses them all.
      const auto failed = result.operations.size();
      result.operations.assign(operations.size(), refused(MetadataErrc::not_applied));
      result.operations[failed] = done;
      return result;
    }
    result.operations.push_back(done);
  }
  return result;
}

}  // namespace mq::metadata
