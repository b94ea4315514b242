#include "metadata/memory_store.h"

#include "metadata/node_table.h"
#include "metadata/watch_list.h"

namespace mq::metadata {
namespace {

using Nodes = std::map<std::string, Node>;

/// Changes of one transaction over the nodes below, which stay as they are until commit().
class Overlay final : public NodeTable {
 public:
  explicit Overlay(Nodes& nodes) : nodes_(nodes) {}

  Result<std::optional<Node>> find(const std::string& path) override {
    if (const auto changed = changes_.find(path); changed != changes_.end()) return changed->second;
    const auto found = nodes_.find(path);
    if (found == nodes_.end()) return std::optional<Node>();
    return std::optional(found->second);
  }
  Result<bool> has_children(const std::string& path) override {
    const std::string prefix = path + "/";
    for (auto it = nodes_.lower_bound(prefix); it != nodes_.end(); ++it) {
      if (!it->first.starts_with(prefix)) break;
      if (!changes_.contains(it->first)) return true;
    }
    for (auto it = changes_.lower_bound(prefix); it != changes_.end(); ++it) {
      if (!it->first.starts_with(prefix)) break;
      if (it->second) return true;
    }
    return false;
  }
  Result<void> insert(const std::string& path, const Node& node) override {
    changes_[path] = node;
    return {};
  }
  Result<void> update(const std::string& path, const Node& node) override {
    changes_[path] = node;
    return {};
  }
  Result<void> erase(const std::string& path) override {
    changes_[path] = std::nullopt;
    return {};
  }

  void commit() {
    for (auto& [path, node] : changes_) {
      if (node)
        nodes_[path] = std::move(*node);
      else
        nodes_.erase(path);
    }
  }

 private:
  Nodes& nodes_;
  std::map<std::string, std::optional<Node>> changes_;
};

void tell_of_change(MemoryStoreState& state, const std::vector<Operation>& operations) {
  for (const auto& [session, peer] : state.peers) {
    if (!state.cut_off.contains(session)) peer.changed(operations);
  }
}

class MemoryStore final : public MetadataStore {
 public:
  MemoryStore(std::shared_ptr<MemoryStoreState> state, base::Runtime& runtime,
              MemoryStoreOptions options)
      : state_(std::move(state)),
        runtime_(runtime),
        options_(options),
        session_(state_->next_session++),
        watches_(runtime) {
    if (options_.single_process) {
      const auto earlier = state_->sessions;
      for (const auto session : earlier) expire_session(*state_, session);
    }
    begin_session();
  }
  ~MemoryStore() override { state_->peers.erase(session_); }

  asio::awaitable<Result<Node>> get(std::string path) override {
    if (check_path(path)) co_return make_error_code(MetadataErrc::invalid_path);
    MQ_CO_TRY_VOID(co_await arrive_read());
    auto node = read(path);
    co_await answer();
    if (!node) co_return make_error_code(MetadataErrc::not_found);
    co_return std::move(*node);
  }

  asio::awaitable<Result<std::vector<std::optional<Node>>>> get_many(
      std::vector<std::string> paths) override {
    for (const auto& path : paths) {
      if (check_path(path)) co_return make_error_code(MetadataErrc::invalid_path);
    }
    MQ_CO_TRY_VOID(co_await arrive_read());
    std::vector<std::optional<Node>> found;
    found.reserve(paths.size());
    for (const auto& path : paths) found.push_back(read(path));
    co_await answer();
    co_return std::move(found);
  }

  asio::awaitable<Result<std::vector<std::string>>> children(std::string path) override {
    if (check_path(path)) co_return make_error_code(MetadataErrc::invalid_path);
    MQ_CO_TRY_VOID(co_await arrive_read());
    const bool exists = read(path).has_value();
    std::vector<std::string> names;
    const std::string prefix = path == "/" ? path : path + "/";
    for (auto it = state_->nodes.lower_bound(prefix); it != state_->nodes.end(); ++it) {
      if (!it->first.starts_with(prefix)) break;
      const auto name = std::string_view(it->first).substr(prefix.size());
      if (name.find('/') == std::string_view::npos) names.emplace_back(name);
    }
    co_await answer();
    if (!exists) co_return make_error_code(MetadataErrc::not_found);
    co_return std::move(names);
  }

  asio::awaitable<Result<MultiResult>> multi(std::vector<Operation> operations) override {
    if (const auto wrong = check_operations(operations)) co_return wrong;
    co_await arrive();
    MQ_CO_TRY_VOID(check_session());
    const auto fault = fault_of(true);
    if (fault == StoreFault::unavailable) co_return make_error_code(MetadataErrc::unavailable);
    if (fault == StoreFault::lost_request) {
      co_await answer();
      co_return make_error_code(MetadataErrc::outcome_unknown);
    }
    auto result = apply(operations);
    co_await answer();
    if (fault == StoreFault::lost_answer) co_return make_error_code(MetadataErrc::outcome_unknown);
    co_return std::move(result);
  }

  asio::awaitable<Result<void>> watch(std::string path, WatchKind kind,
                                      std::function<void()> fire) override {
    if (check_path(path)) co_return make_error_code(MetadataErrc::invalid_path);
    MQ_CO_TRY_VOID(co_await arrive_read());
    watches_.add(std::move(path), kind, std::move(fire));
    co_return Result<void>();
  }

  std::uint64_t session() const override { return session_; }
  base::Duration session_timeout() const override { return options_.session_timeout; }
  bool online() const override { return !closed_ && !lost_; }

  void on_session_lost(std::function<void()> lost) override {
    listeners_.push_back(std::move(lost));
  }
  asio::awaitable<Result<void>> renew() override {
    co_await arrive();
    const auto fault = fault_of(false);
    if (closed_ || fault != StoreFault::none) co_return make_error_code(MetadataErrc::unavailable);
    if (lost_) {
      session_ = state_->next_session++;
      begin_session();
    }
    co_return Result<void>();
  }

  asio::awaitable<void> close() override {
    co_await arrive();
    state_->peers.erase(session_);
    if (!closed_ && !state_->cut_off.contains(session_)) expire_session(*state_, session_);
    closed_ = true;
  }

 private:
  void begin_session() {
    lost_ = false;
    state_->sessions.insert(session_);
    auto& peer = state_->peers[session_];
    peer.lost = [this] {
      lost_ = true;
      watches_.fire_all();
      for (const auto& listener : listeners_) runtime_.post(listener);
    };
    peer.changed = [this](const std::vector<Operation>& operations) {
      watches_.changed(operations);
    };
    peer.connected = [this] { watches_.fire_all(); };
  }
  StoreFault fault_of(bool write) const {
    if (state_->cut_off.contains(session_)) return StoreFault::unavailable;
    return state_->fault ? state_->fault(write) : StoreFault::none;
  }
  /// Suspends until the call takes effect; the order of calls is kept.
  asio::awaitable<void> arrive() {
    latest_arrival_ = std::max(latest_arrival_, runtime_.now() + random_latency());
    co_await runtime_.sleep_until(latest_arrival_);
  }
  asio::awaitable<Result<void>> arrive_read() {
    co_await arrive();
    MQ_CO_TRY_VOID(check_session());
    const auto fault = fault_of(false);
    if (fault != StoreFault::none) co_return make_error_code(MetadataErrc::unavailable);
    co_return Result<void>();
  }
  asio::awaitable<void> answer() {
    latest_answer_ = std::max(latest_answer_, runtime_.now() + random_latency());
    co_await runtime_.sleep_until(latest_answer_);
  }
  base::Duration random_latency() {
    const auto max = static_cast<std::uint64_t>((options_.latency_max + state_->slower_by).count());
    return base::Duration(max == 0 ? 0 : static_cast<std::int64_t>(runtime_.random() % (max + 1)));
  }

  Result<void> check_session() const {
    if (closed_) return make_error_code(MetadataErrc::unavailable);
    if (!online()) return make_error_code(MetadataErrc::session_lost);
    return {};
  }

  std::optional<Node> read(const std::string& path) const {
    if (path == "/") return Node{};
    const auto found = state_->nodes.find(path);
    if (found == state_->nodes.end()) return std::nullopt;
    return found->second;
  }

  Result<MultiResult> apply(const std::vector<Operation>& operations) {
    Overlay overlay(state_->nodes);
    auto result = apply_operations(overlay, operations, session_);
    if (!result || !result->applied()) return result;
    overlay.commit();
    tell_of_change(*state_, operations);
    if (state_->on_applied) state_->on_applied();
    return result;
  }

  std::shared_ptr<MemoryStoreState> state_;  // shared with the test and with later processes
  base::Runtime& runtime_;
  MemoryStoreOptions options_;
  std::uint64_t session_;
  WatchList watches_;
  std::vector<std::function<void()>> listeners_;
  base::TimePoint latest_arrival_{};
  base::TimePoint latest_answer_{};
  bool lost_ = false;
  bool closed_ = false;
};

}  // namespace

std::unique_ptr<MetadataStore> open_memory_store(std::shared_ptr<MemoryStoreState> state,
                                                 base::Runtime& runtime,
                                                 MemoryStoreOptions options) {
  return std::make_unique<MemoryStore>(std::move(state), runtime, options);
}

void expire_session(MemoryStoreState& state, std::uint64_t session) {
  state.sessions.erase(session);
  std::vector<Operation> gone;
  for (const auto& [path, node] : state.nodes) {
    if (node.ephemeral_owner == session) gone.emplace_back(Remove(path, kAnyVersion));
  }
  for (const auto& operation : gone) state.nodes.erase(std::get<Remove>(operation).path);
  if (!state.cut_off.contains(session)) {
    const auto lost = state.peers.extract(session);
    if (!lost.empty()) lost.mapped().lost();
  }
  tell_of_change(state, gone);
}

void cut_off(MemoryStoreState& state, std::uint64_t session) { state.cut_off.insert(session); }

void reconnect(MemoryStoreState& state, std::uint64_t session) {
  state.cut_off.erase(session);
  if (!state.sessions.contains(session)) {
    const auto lost = state.peers.extract(session);
    if (!lost.empty()) lost.mapped().lost();
    return;
  }
  if (const auto peer = state.peers.find(session); peer != state.peers.end())
    peer->second.connected();
}

}  // namespace mq::metadata
