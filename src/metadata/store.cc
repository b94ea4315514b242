#include "metadata/store.h"

namespace mq::metadata {
namespace {

constexpr std::size_t kPathBytesMax = 1024;

/// The version that one operation alone left behind, or why it failed.
Result<std::int32_t> only(const Result<MultiResult>& result) {
  if (!result) return result.error();
  const OperationResult& one = result->operations.front();
  if (one.error) return one.error;
  return one.version;
}

}  // namespace

bool MultiResult::applied() const noexcept { return !first_error(); }

Error MultiResult::first_error() const noexcept {
  for (const auto& operation : operations) {
    if (operation.error && operation.error != make_error_code(MetadataErrc::not_applied))
      return operation.error;
  }
  return {};
}

asio::awaitable<Result<std::int32_t>> MetadataStore::create(std::string path, std::string value,
                                                            CreateMode mode) {
  std::vector<Operation> operations;
  operations.emplace_back(Create(std::move(path), std::move(value), mode));
  const auto result = co_await multi(std::move(operations));
  co_return only(result);
}

asio::awaitable<Result<std::int32_t>> MetadataStore::set(std::string path, std::string value,
                                                         std::int32_t expected_version) {
  std::vector<Operation> operations;
  operations.emplace_back(SetValue(std::move(path), std::move(value), expected_version));
  const auto result = co_await multi(std::move(operations));
  co_return only(result);
}

asio::awaitable<Result<void>> MetadataStore::remove(std::string path,
                                                    std::int32_t expected_version) {
  std::vector<Operation> operations;
  operations.emplace_back(Remove(std::move(path), expected_version));
  const auto result = co_await multi(std::move(operations));
  const auto removed = only(result);
  if (!removed) co_return removed.error();
  co_return Result<void>();
}

void MetadataStore::on_session_lost(std::function<void()> lost) { static_cast<void>(lost); }

asio::awaitable<Result<void>> MetadataStore::renew() {
  co_return make_error_code(MetadataErrc::unavailable);
}

std::optional<std::string> check_path(std::string_view path) {
  if (path.empty() || path.front() != '/') return "a node path starts with \"/\"";
  if (path == "/") return std::nullopt;
  if (path.size() > kPathBytesMax) return "a node path has at most 1024 bytes";
  for (const char c : path) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      return "a node path has no control bytes";
  }
  std::string_view rest = path;
  while (!rest.empty()) {
    rest.remove_prefix(1);
    const auto name = rest.substr(0, rest.find('/'));
    if (name.empty()) return "a node path has no empty part";
    if (name == "." || name == "..") return "no part of a node path is \".\" or \"..\"";
    rest.remove_prefix(name.size());
  }
  return std::nullopt;
}

std::string_view parent_path(std::string_view path) noexcept {
  const auto slash = path.rfind('/');
  return slash == 0 ? path.substr(0, 1) : path.substr(0, slash);
}

std::string_view node_name(std::string_view path) noexcept {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace mq::metadata
