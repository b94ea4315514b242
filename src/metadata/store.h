#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/asio.h"
#include "base/runtime.h"
#include "metadata/error.h"

namespace mq::metadata {

/// Largest value of a node, and largest sum of paths and values in one multi.
inline constexpr std::size_t kValueBytesMax = std::size_t{512} << 10;
inline constexpr std::size_t kMultiBytesMax = std::size_t{768} << 10;
/// Set and remove whatever version the node has.
inline constexpr std::int32_t kAnyVersion = -1;

struct Node {
  std::string value;
  std::int32_t version = 0;           ///< counts sets: 0 when created
  std::uint64_t ephemeral_owner = 0;  ///< session that made it; 0: persistent
};

enum class CreateMode {
  persistent,
  ephemeral,  ///< goes away with the session that made it
};

/// Named fields instead of long argument lists; each has a constructor, so that one may be written
/// as a temporary.
struct Create {
  Create(std::string node_path, std::string node_value,
         CreateMode node_mode = CreateMode::persistent)
      : path(std::move(node_path)), value(std::move(node_value)), mode(node_mode) {}
  std::string path;
  std::string value;
  CreateMode mode;
};
struct SetValue {
  SetValue(std::string node_path, std::string node_value, std::int32_t expected_version)
      : path(std::move(node_path)), value(std::move(node_value)), version(expected_version) {}
  std::string path;
  std::string value;
  std::int32_t version;
};
struct Remove {
  Remove(std::string node_path, std::int32_t expected_version)
      : path(std::move(node_path)), version(expected_version) {}
  std::string path;
  std::int32_t version;
};
/// Succeeds when the node is there and has this version; changes nothing.
struct Check {
  Check(std::string node_path, std::int32_t expected_version)
      : path(std::move(node_path)), version(expected_version) {}
  std::string path;
  std::int32_t version;
};
using Operation = std::variant<Create, SetValue, Remove, Check>;

/// What became of one operation of a multi. When one failed, all others say not_applied.
struct OperationResult {
  OperationResult() = default;
  OperationResult(Error refusal, std::int32_t node_version)
      : error(refusal), version(node_version) {}
  Error error;                ///< empty: done
  std::int32_t version = -1;  ///< of the node after a create or set
};
struct MultiResult {
  std::vector<OperationResult> operations;  ///< in the order given
  [[nodiscard]] bool applied() const noexcept;
  [[nodiscard]] Error first_error()
      const noexcept;  ///< the operation that failed; empty if applied
};

enum class WatchKind {
  data,      ///< the node is made, set or removed
  children,  ///< a child is made or removed
};

/// A small tree of versioned values with ZooKeeper's meaning: topics, partition state and
/// registrations live in it, records and offsets of records never. One file (SQLite) behind a
/// standalone broker.
///
/// Belongs to one Runtime: calls come from its thread and resume there. Calls may overlap; they
/// take effect in the order made. A write that has returned success survives a crash of everything
/// (MET-1). Paths are absolute, "/" exists always, a node's parent must exist, a node with children
/// cannot be removed. Unavailable means not applied, outcome_unknown means unknown: the caller
/// reads and compares the writer tag inside the value.
class MetadataStore {
 public:
  virtual ~MetadataStore() = default;

  virtual asio::awaitable<Result<Node>> get(std::string path) = 0;
  /// The nodes at `paths`, in order, nothing for one that is not there. Not a snapshot: each is
  /// read by itself.
  virtual asio::awaitable<Result<std::vector<std::optional<Node>>>> get_many(
      std::vector<std::string> paths) = 0;
  /// Names (not paths) of the children, sorted bytewise.
  virtual asio::awaitable<Result<std::vector<std::string>>> children(std::string path) = 0;

  /// All or nothing, in order: an operation sees what those before it did.
  virtual asio::awaitable<Result<MultiResult>> multi(std::vector<Operation> operations) = 0;
  /// One operation each; the version is that of the node afterwards.
  asio::awaitable<Result<std::int32_t>> create(std::string path, std::string value,
                                               CreateMode mode = CreateMode::persistent);
  asio::awaitable<Result<std::int32_t>> set(std::string path, std::string value,
                                            std::int32_t expected_version);
  asio::awaitable<Result<void>> remove(std::string path, std::int32_t expected_version);

  /// Calls `fire` once on the store's runtime after the next change of that kind that follows the
  /// return of this call. A hint: it may come late, for nothing, or not at all while the store is
  /// away; whoever depends on a change reads. The path need not exist for kind data.
  virtual asio::awaitable<Result<void>> watch(std::string path, WatchKind kind,
                                              std::function<void()> fire) = 0;

  /// This process's session, never 0: ephemeral nodes carry it. A new open is a new session.
  [[nodiscard]] virtual std::uint64_t session() const = 0;
  /// How long the store keeps the session of a process that it does not hear from; zero: for ever.
  /// The store may give another time than was asked for.
  [[nodiscard]] virtual base::Duration session_timeout() const { return {}; }
  /// False once every later call fails: after a disk error or close(), and while the session is
  /// lost. A store that only does not answer now is online.
  [[nodiscard]] virtual bool online() const = 0;
  /// Calls `lost` on the store's runtime each time the session has ended without close(). Its
  /// ephemeral nodes are gone, and every call returns session_lost until renew() has begun another
  /// session: whoever held something through an ephemeral node takes it again before anybody
  /// writes. A backend in a file never loses its session.
  virtual void on_session_lost(std::function<void()> lost);
  /// unavailable: the store did not answer in time, try again.
  virtual asio::awaitable<Result<void>> renew();
  /// The owner is about to stop: calls that wait for a store which does not answer end soon, as
  /// unavailable or outcome_unknown. With one that answers nothing changes.
  virtual void shorten_waits() {}
  /// What keeps the store from answering now, for people; empty: nothing known.
  [[nodiscard]] virtual std::string trouble() const { return {}; }
  /// Ends the session (its ephemeral nodes go) and releases the store. Later calls return
  /// unavailable.
  virtual asio::awaitable<void> close() = 0;
};

/// Why a path is refused, nothing for a good one: absolute, no empty, "." or ".." part, no control
/// bytes, at most 1024 bytes.
std::optional<std::string> check_path(std::string_view path);
/// "/a" of "/a/b", "/" of "/a". The path is good and not "/".
std::string_view parent_path(std::string_view path) noexcept;
std::string_view node_name(std::string_view path) noexcept;

}  // namespace mq::metadata
