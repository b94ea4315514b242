#include "metadata/zookeeper_store.h"

#include <algorithm>
#include <deque>

#include "base/log.h"
#include "base/wait_list.h"
#include "metadata/node_table.h"
#include "metadata/watch_list.h"
#include "metadata/zookeeper_handle.h"
#include "metadata/zookeeper_names.h"

namespace mq::metadata {
namespace {

/// Reads that are under way at once for one get_many.
constexpr std::size_t kReadsAtOnce = 500;
constexpr int kChrootTries = 5;
/// What a call may still take once the owner stops.
constexpr std::chrono::milliseconds kShortWait{500};
constexpr std::chrono::seconds kNamesAgain{5};
constexpr std::chrono::seconds kNamesAfterFailure{1};

bool is_lost(const Error& error) { return error == make_error_code(MetadataErrc::outcome_unknown); }

/// One call, waiting for the connection or for its answer.
struct Request {
  enum class Kind { get, children, multi, watch, make_chroot };
  Request(Kind request_kind, base::Runtime& runtime) : kind(request_kind), done(runtime) {}

  Kind kind;
  std::string path;
  std::vector<Operation> operations;
  WatchKind watch_kind = WatchKind::data;
  std::function<void()> fire;
  base::TimePoint begun;
  base::TimePoint due;  ///< to be sent, or, once it is sent, to be answered
  bool sent = false;
  bool ended = false;
  ZooKeeperReply reply;
  base::WaitList done;

  [[nodiscard]] bool changes_nothing() const {
    return kind != Kind::multi && kind != Kind::make_chroot;
  }
};
using RequestPtr = std::shared_ptr<Request>;  // of the caller and of the handle

/// A data watch on a node that is not there waits for it.
bool is_set(const Request& watch, const Error& error) {
  return !error ||
         (watch.watch_kind == WatchKind::data && error == make_error_code(MetadataErrc::not_found));
}

/// "/" is there always, and is no node that could be changed.
std::optional<MultiResult> refuse_root(const std::vector<Operation>& operations) {
  MultiResult result;
  bool refused = false;
  for (const auto& operation : operations) {
    const bool root =
        std::visit([](const auto& any) { return any.path == "/"; }, operation) && !refused;
    Error error = MetadataErrc::not_applied;
    if (root)
      error = std::holds_alternative<Create>(operation) ? MetadataErrc::already_exists
                                                        : MetadataErrc::not_found;
    result.operations.emplace_back(error, -1);
    refused = refused || root;
  }
  if (!refused) return std::nullopt;
  return result;
}

/// "/" exists always, also where the chroot is not made yet.
bool is_root_to_be(const Request& request) {
  return request.path == "/" && request.reply.error == make_error_code(MetadataErrc::not_found);
}

class ZooKeeperStore final : public MetadataStore {
 public:
  ZooKeeperStore(ZooKeeperOptions options, base::Runtime& runtime)
      : options_(std::move(options)),
        runtime_(runtime),
        mailbox_(std::make_shared<Mailbox>(runtime)),
        watches_(runtime),
        changed_(runtime) {}
  ~ZooKeeperStore() override {
    stop_reaching();
    closed_ = true;
    mailbox_->close();
    handle_.reset();
    end_waiting(MetadataErrc::unavailable);
  }

  asio::awaitable<Result<void>> open() {
    MQ_CO_TRY_VOID(co_await begin_session(options_.connect_timeout));
    const Error error = co_await look_for_chroot();
    if (!error || error == make_error_code(MetadataErrc::not_found)) co_return Result<void>();
    co_return error;
  }

  asio::awaitable<Result<Node>> get(std::string path) override;
  asio::awaitable<Result<std::vector<std::optional<Node>>>> get_many(
      std::vector<std::string> paths) override;
  asio::awaitable<Result<std::vector<std::string>>> children(std::string path) override;
  asio::awaitable<Result<MultiResult>> multi(std::vector<Operation> operations) override;
  asio::awaitable<Result<void>> watch(std::string path, WatchKind kind,
                                      std::function<void()> fire) override;

  std::uint64_t session() const override { return session_.id; }
  base::Duration session_timeout() const override { return session_.timeout; }
  bool online() const override { return !closed_ && !lost_; }
  void on_session_lost(std::function<void()> lost) override {
    listeners_.push_back(std::move(lost));
  }
  asio::awaitable<Result<void>> renew() override;
  void shorten_waits() override;
  std::string trouble() const override;
  asio::awaitable<void> close() override;

 private:
  // The session
  asio::awaitable<Result<void>> begin_session(base::Duration limit);
  asio::awaitable<Error> look_for_chroot();
  asio::awaitable<Result<void>> make_chroot();
  void reach();
  void stop_reaching();
  void reach_again(base::Duration pause);
  void on_names(const ZooKeeperAddresses& addresses);
  void on_connected(const ZooKeeperSession& session);
  void on_disconnected();
  void on_expired();

  // Requests
  [[nodiscard]] RequestPtr new_request(Request::Kind kind, std::string path = {});
  void start(const RequestPtr& request);
  void send(const RequestPtr& request);
  void answered(const RequestPtr& request, ZooKeeperReply reply);
  static void end(const RequestPtr& request, Error error);
  void give_up(const RequestPtr& request);
  void end_waiting(MetadataErrc error);
  [[nodiscard]] base::TimePoint due(const Request& request) const;
  asio::awaitable<void> wait_for(RequestPtr request);
  asio::awaitable<void> wait_for_end(RequestPtr request);

  const ZooKeeperOptions options_;
  base::Runtime& runtime_;
  const std::shared_ptr<Mailbox> mailbox_;
  WatchList watches_;
  std::vector<std::function<void()>> listeners_;
  base::WaitList changed_;  // connected_, closed_, lost_ or what is in flight

  std::unique_ptr<ZooKeeperHandle> handle_;
  ZooKeeperSession session_;   // the last one that was connected
  ZooKeeperSession resumed_;   // what the next handle goes on with
  std::string servers_;        // what the handle was given
  std::string names_problem_;  // of the last look-up
  bool reaching_ = false;
  bool connected_ = false;
  bool chroot_there_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // of calls that outlive the store
  bool lost_ = false;
  bool closed_ = false;
  bool sync_needed_ = false;
  bool hurried_ = false;
  base::TimePoint hurried_since_{};
  base::TimePoint away_since_{};
  base::Runtime::TimerId names_timer_ = 0;

  std::deque<RequestPtr> waiting_;  // for a connection, in the order made
};

// The session: names are looked up, a handle connects, and connects again by itself

asio::awaitable<Result<void>> ZooKeeperStore::begin_session(base::Duration limit) {
  const auto deadline = runtime_.now() + limit;
  resumed_ = {};
  servers_.clear();
  if (!lost_) away_since_ = runtime_.now();
  reach();
  bool in_time = true;
  while (in_time && !connected_ && !closed_) in_time = co_await changed_.wait_until(deadline);
  if (connected_) co_return Result<void>();
  if (!closed_) {
    stop_reaching();
    handle_.reset();
  }
  co_return make_error_code(MetadataErrc::unavailable);
}

asio::awaitable<Error> ZooKeeperStore::look_for_chroot() {
  const std::weak_ptr<bool> alive = alive_;
  const auto request = new_request(Request::Kind::get, "/");
  co_await wait_for(request);
  if (alive.expired()) co_return make_error_code(MetadataErrc::unavailable);
  if (!request->reply.error) chroot_there_ = true;
  co_return request->reply.error;
}

/// Before the first write or watch: whoever only looks, at a path that is wrong, leaves nothing
/// behind.
asio::awaitable<Result<void>> ZooKeeperStore::make_chroot() {
  if (options_.chroot.empty() || chroot_there_) co_return Result<void>();
  Error error;
  const std::weak_ptr<bool> alive = alive_;
  for (int tries = 0; tries < kChrootTries; ++tries) {
    error = co_await look_for_chroot();
    if (!error) co_return Result<void>();
    if (error != make_error_code(MetadataErrc::not_found)) break;
    const auto request = new_request(Request::Kind::make_chroot);
    co_await wait_for(request);
    if (alive.expired()) co_return make_error_code(MetadataErrc::unavailable);
    // What became of it shows when it is read again.
    error = request->reply.error;
    const bool done =
        !error || is_lost(error) || error == make_error_code(MetadataErrc::already_exists);
    if (!done) break;
  }
  // Whatever was to follow has not been sent.
  if (is_lost(error)) error = make_error_code(MetadataErrc::unavailable);
  co_return error;
}

void ZooKeeperStore::reach() {
  reaching_ = true;
  look_up(options_.servers, mailbox_,
          [this](const ZooKeeperAddresses& addresses) { on_names(addresses); });
}

void ZooKeeperStore::stop_reaching() {
  reaching_ = false;
  if (names_timer_ != 0) runtime_.cancel_timer(names_timer_);
  names_timer_ = 0;
}

void ZooKeeperStore::reach_again(base::Duration pause) {
  if (names_timer_ != 0) runtime_.cancel_timer(names_timer_);
  names_timer_ = runtime_.start_timer(runtime_.now() + pause, [this] {
    names_timer_ = 0;
    reach();
  });
}

void ZooKeeperStore::on_names(const ZooKeeperAddresses& addresses) {
  if (!reaching_ || connected_) return;
  names_problem_ = addresses.problem;
  if (addresses.servers.empty()) return reach_again(kNamesAfterFailure);
  reach_again(kNamesAgain);
  if (handle_ && addresses.servers == servers_) return;
  // Where the ensemble has moved the session goes on under its new addresses. Replacing them in
  // the old handle would close a socket that its thread is using.
  servers_ = addresses.servers;
  ZooKeeperHandle::Events events;
  events.connected = [this](const ZooKeeperSession& session) { on_connected(session); };
  events.disconnected = [this] { on_disconnected(); };
  events.expired = [this] { on_expired(); };
  events.changed = [this](const std::string& path, WatchKind kind) { watches_.fire(path, kind); };
  const ZooKeeperHandle::Settings settings{servers_, options_.chroot, options_.session_timeout,
                                           resumed_};
  handle_ = ZooKeeperHandle::open(settings, runtime_, std::move(events));
  if (handle_) return;
  names_problem_ = "the system has no threads or descriptors left for the ZooKeeper client";
  reach_again(kNamesAfterFailure);
}

void ZooKeeperStore::on_connected(const ZooKeeperSession& session) {
  if (closed_) return;
  const bool again = resumed_.id != 0;
  stop_reaching();
  session_ = resumed_ = session;
  connected_ = true;
  lost_ = false;
  names_problem_.clear();
  if (again) {
    base::log_info(
        "metadata", "{} answers again after {} ms", describe(options_),
        std::chrono::duration_cast<std::chrono::milliseconds>(runtime_.now() - away_since_)
            .count());
    watches_.fire_all();  // changes may have been missed
  }
  // What was written before, by us or by others, may not have come to this server yet.
  sync_needed_ = true;
  auto waiting = std::exchange(waiting_, {});
  for (const auto& request : waiting) {
    if (!request->ended) start(request);
  }
  changed_.notify_all();
}

void ZooKeeperStore::on_disconnected() {
  if (!connected_) return;
  connected_ = false;
  away_since_ = runtime_.now();
  changed_.notify_all();
  if (closed_) return;
  base::log_warning("metadata", "the connection to {} is lost: {}", describe(options_),
                    ZooKeeperHandle::last_complaint());
  reaching_ = true;
  reach_again(kNamesAgain);
}

void ZooKeeperStore::on_expired() {
  if (closed_) return;
  base::log_warning("metadata", "{} has ended this broker's session", describe(options_));
  stop_reaching();
  connected_ = false;
  lost_ = true;
  away_since_ = runtime_.now();
  end_waiting(MetadataErrc::session_lost);
  handle_.reset();  // what is still in flight ends as lost
  watches_.fire_all();
  changed_.notify_all();
  for (const auto& listener : listeners_) runtime_.post(listener);
}

asio::awaitable<Result<void>> ZooKeeperStore::renew() {
  if (closed_) co_return make_error_code(MetadataErrc::unavailable);
  if (!lost_) co_return Result<void>();
  co_return co_await begin_session(options_.patience);
}

std::string ZooKeeperStore::trouble() const {
  if (connected_ || closed_) return {};
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(runtime_.now() - away_since_).count();
  std::string why = names_problem_;
  if (why.empty()) why = ZooKeeperHandle::last_complaint();
  return fmt::format("{} has not answered for {} s{}{}{}", describe(options_), seconds,
                     why.empty() ? "" : " (", why, why.empty() ? "" : ")");
}

asio::awaitable<void> ZooKeeperStore::close() {
  if (closed_) co_return;
  closed_ = true;
  stop_reaching();
  end_waiting(MetadataErrc::unavailable);
  changed_.notify_all();
  if (!handle_) co_return;
  const auto drained_by = runtime_.now() + options_.drain_timeout;
  bool in_time = true;
  while (in_time && connected_ && handle_ && handle_->in_flight() > 0)
    in_time = co_await changed_.wait_until(drained_by);
  if (!handle_) co_return;
  bool ended = false;
  handle_->close([this, &ended] {
    ended = true;
    changed_.notify_all();
  });
  const auto ended_by = runtime_.now() + options_.close_timeout;
  in_time = true;
  while (in_time && !ended) in_time = co_await changed_.wait_until(ended_by);
  if (!ended) {
    base::log_warning("metadata",
                      "the ZooKeeper client does not end; its session ends by itself after {} ms",
                      options_.session_timeout.count());
  }
  connected_ = false;
  handle_.reset();
}

// Requests

RequestPtr ZooKeeperStore::new_request(Request::Kind kind, std::string path) {
  auto request = std::make_shared<Request>(kind, runtime_);
  request->path = std::move(path);
  request->begun = runtime_.now();
  return request;
}

void ZooKeeperStore::start(const RequestPtr& request) {
  if (closed_) return end(request, MetadataErrc::unavailable);
  if (lost_) return end(request, MetadataErrc::session_lost);
  // An earlier request that still waits goes first.
  if (connected_) return send(request);
  request->due = away_since_ + options_.patience;
  if (runtime_.now() >= request->due) return end(request, MetadataErrc::unavailable);
  waiting_.push_back(request);
}

void ZooKeeperStore::send(const RequestPtr& request) {
  if (sync_needed_) {
    sync_needed_ = false;
    handle_->sync([](const ZooKeeperReply&) {});
  }
  request->sent = true;
  request->due = runtime_.now() + 2 * options_.session_timeout;
  auto done = [this, request](ZooKeeperReply reply) { answered(request, std::move(reply)); };
  switch (request->kind) {
    case Request::Kind::get:
      return handle_->get(request->path, std::move(done));
    case Request::Kind::children:
      return handle_->children(request->path, std::move(done));
    case Request::Kind::multi:
      return handle_->multi(request->operations, std::move(done));
    case Request::Kind::watch:
      return handle_->watch(request->path, request->watch_kind, std::move(done));
    case Request::Kind::make_chroot:
      return handle_->make_chroot(std::move(done));
  }
}

void ZooKeeperStore::answered(const RequestPtr& request, ZooKeeperReply reply) {
  changed_.notify_all();
  if (request->ended) return;
  if (is_lost(reply.error) && request->changes_nothing()) {
    if (closed_ || lost_)
      return end(request, lost_ ? MetadataErrc::session_lost : MetadataErrc::unavailable);
    request->sent = false;
    return start(request);
  }
  // Before anything else that the client reports.
  if (request->kind == Request::Kind::watch && is_set(*request, reply.error))
    watches_.add(request->path, request->watch_kind, std::move(request->fire));
  const Error error = reply.error;
  request->reply = std::move(reply);
  end(request, error);
}

void ZooKeeperStore::end(const RequestPtr& request, Error error) {
  request->reply.error = error;
  request->ended = true;
  request->done.notify_all();
}

void ZooKeeperStore::give_up(const RequestPtr& request) {
  if (request->sent) sync_needed_ = true;
  const bool unknown = request->sent && !request->changes_nothing();
  end(request, unknown ? MetadataErrc::outcome_unknown : MetadataErrc::unavailable);
}

void ZooKeeperStore::end_waiting(MetadataErrc error) {
  for (const auto& request : std::exchange(waiting_, {})) {
    if (!request->ended) end(request, error);
  }
}

asio::awaitable<void> ZooKeeperStore::wait_for(RequestPtr request) {
  start(request);
  co_await wait_for_end(std::move(request));
}

/// It may be sent while it is waited for, with time of its own then; and the store may be told to
/// hurry.
asio::awaitable<void> ZooKeeperStore::wait_for_end(RequestPtr request) {
  while (!request->ended) {
    const auto look_again = std::min(due(*request), runtime_.now() + kShortWait);
    static_cast<void>(co_await request->done.wait_until(look_again));
    if (!request->ended && runtime_.now() >= due(*request)) give_up(request);
  }
}

base::TimePoint ZooKeeperStore::due(const Request& request) const {
  if (!hurried_) return request.due;
  return std::min(request.due, std::max(request.begun, hurried_since_) + kShortWait);
}

void ZooKeeperStore::shorten_waits() {
  hurried_ = true;
  hurried_since_ = runtime_.now();
}

asio::awaitable<Result<Node>> ZooKeeperStore::get(std::string path) {
  if (check_path(path)) co_return make_error_code(MetadataErrc::invalid_path);
  const auto request = new_request(Request::Kind::get, std::move(path));
  co_await wait_for(request);
  if (is_root_to_be(*request)) co_return Node{};
  if (request->reply.error) co_return request->reply.error;
  if (request->path == "/") co_return Node{};
  co_return std::move(request->reply.node);
}

asio::awaitable<Result<std::vector<std::optional<Node>>>> ZooKeeperStore::get_many(
    std::vector<std::string> paths) {
  for (const auto& path : paths) {
    if (check_path(path)) co_return make_error_code(MetadataErrc::invalid_path);
  }
  std::vector<std::optional<Node>> found;
  found.reserve(paths.size());
  std::deque<RequestPtr> ahead;
  std::size_t next = 0;
  while (found.size() < paths.size()) {
    for (; next < paths.size() && ahead.size() < kReadsAtOnce; ++next) {
      ahead.push_back(new_request(Request::Kind::get, paths[next]));
      start(ahead.back());
    }
    const RequestPtr request = ahead.front();
    ahead.pop_front();
    co_await wait_for_end(request);
    const Error error = request->reply.error;
    if (error && error != make_error_code(MetadataErrc::not_found)) co_return error;
    if (error && !is_root_to_be(*request))
      found.emplace_back();
    else if (request->path == "/")
      found.emplace_back(Node{});
    else
      found.emplace_back(std::move(request->reply.node));
  }
  co_return std::move(found);
}

asio::awaitable<Result<std::vector<std::string>>> ZooKeeperStore::children(std::string path) {
  if (check_path(path)) co_return make_error_code(MetadataErrc::invalid_path);
  const auto request = new_request(Request::Kind::children, std::move(path));
  co_await wait_for(request);
  if (is_root_to_be(*request)) co_return std::vector<std::string>();
  if (request->reply.error) co_return request->reply.error;
  auto names = std::move(request->reply.names);
  // ZooKeeper's own, where there is no chroot.
  if (options_.chroot.empty() && request->path == "/") std::erase(names, "zookeeper");
  std::sort(names.begin(), names.end());
  co_return std::move(names);
}

asio::awaitable<Result<MultiResult>> ZooKeeperStore::multi(std::vector<Operation> operations) {
  if (const auto wrong = check_operations(operations)) co_return wrong;
  if (wire_bytes(operations, options_.chroot) > kZooKeeperRequestBytesMax)
    co_return make_error_code(MetadataErrc::too_large);
  if (!closed_) {
    if (auto refused = refuse_root(operations)) co_return std::move(*refused);
    if (operations.empty()) co_return MultiResult{};
    MQ_CO_TRY_VOID(co_await make_chroot());
  }
  const auto request = new_request(Request::Kind::multi);
  request->operations = std::move(operations);
  co_await wait_for(request);
  if (request->reply.error) co_return request->reply.error;
  MultiResult result;
  result.operations = std::move(request->reply.operations);
  co_return std::move(result);
}

asio::awaitable<Result<void>> ZooKeeperStore::watch(std::string path, WatchKind kind,
                                                    std::function<void()> fire) {
  if (check_path(path)) co_return make_error_code(MetadataErrc::invalid_path);
  if (!closed_) {
    MQ_CO_TRY_VOID(co_await make_chroot());
  }
  const auto request = new_request(Request::Kind::watch, std::move(path));
  request->watch_kind = kind;
  request->fire = std::move(fire);
  co_await wait_for(request);
  if (!is_set(*request, request->reply.error)) co_return request->reply.error;
  co_return Result<void>();
}

}  // namespace

std::string describe(const ZooKeeperOptions& options) {
  std::string text = "ZooKeeper ";
  for (const auto& server : options.servers) {
    if (&server != &options.servers.front()) text += ",";
    text += server.text();
  }
  return text + options.chroot;
}

asio::awaitable<Result<std::unique_ptr<MetadataStore>>> open_zookeeper_store(
    ZooKeeperOptions options, base::Runtime& runtime, std::string& trouble) {
  auto store = std::make_unique<ZooKeeperStore>(std::move(options), runtime);
  const auto opened = co_await store->open();
  if (!opened) {
    trouble = store->trouble();
    co_await store->close();
    co_return opened.error();
  }
  co_return std::unique_ptr<MetadataStore>(std::move(store));
}

}  // namespace mq::metadata
