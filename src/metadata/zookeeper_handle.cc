#include "metadata/zookeeper_handle.h"

#include <zookeeper/zookeeper.h>

#include <cstring>
#include <mutex>
#include <unordered_map>

#include "metadata/mailbox.h"
#include "metadata/zookeeper_thread.h"

namespace mq::metadata {
namespace {

Error to_error(int code) {
  switch (code) {
    case ZOK:
      return {};
    case ZNONODE:
      return MetadataErrc::not_found;
    case ZNODEEXISTS:
      return MetadataErrc::already_exists;
    case ZBADVERSION:
      return MetadataErrc::bad_version;
    case ZNOTEMPTY:
      return MetadataErrc::not_empty;
    case ZNOCHILDRENFOREPHEMERALS:
      return MetadataErrc::ephemeral_parent;
    case ZBADARGUMENTS:
      return MetadataErrc::invalid_path;
    case ZSESSIONEXPIRED:
      return MetadataErrc::session_lost;
    case ZNOAUTH:
    case ZINVALIDACL:
    case ZAUTHFAILED:
      return MetadataErrc::not_permitted;
    case ZCONNECTIONLOSS:
    case ZOPERATIONTIMEOUT:
    case ZCLOSING:
      return MetadataErrc::outcome_unknown;
    case ZRUNTIMEINCONSISTENCY:
      return MetadataErrc::not_applied;
    default:
      return MetadataErrc::unavailable;
  }
}

/// Kept for ever, since a thread of the client may outlive everything else.
struct Complaint {
  std::mutex mutex;  // guards text
  std::string text;
};
Complaint& complaint() {
  static auto* const one = new Complaint;
  return *one;
}

/// "…:ZOO_ERROR@function@123: Socket 127.0.0.1:2181 zk retcode=-4, …" without what comes before it.
void note_complaint(const char* message) {
  std::string_view text(message);
  if (const auto level = text.find("ZOO_"); level != std::string_view::npos) {
    if (const auto colon = text.find(": ", level); colon != std::string_view::npos)
      text.remove_prefix(colon + 2);
  }
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  const std::lock_guard lock(complaint().mutex);
  complaint().text = text.substr(0, 300);
}

}  // namespace

/// What the client's threads may touch. It lives until they have ended, at the latest with the
/// process.
class ZooKeeperHandle::Core : public std::enable_shared_from_this<Core> {
 public:
  Core(std::string chroot, base::Runtime& runtime, Events events)
      : chroot_(std::move(chroot)),
        events_(std::move(events)),
        mailbox_(std::make_shared<Mailbox>(runtime)) {}

  bool init(const Settings& settings);
  void detach();
  void close(std::function<void()> done);
  [[nodiscard]] std::size_t in_flight() const { return calls_.size(); }

  void get(const std::string& path, Done done);
  void children(const std::string& path, Done done);
  void multi(const std::vector<Operation>& operations, Done done);
  void watch(const std::string& path, WatchKind kind, Done done);
  void sync(Done done);
  void make_chroot(Done done);

 private:
  /// One request. The client writes into it, so that it stays until the completion has come or the
  /// client has ended.
  struct Call {
    Core* core = nullptr;
    Done done;
    ZooKeeperReply reply;
    const std::vector<Operation>* operations = nullptr;  // only until it is sent
    std::vector<std::string> paths;
    std::vector<zoo_op_t> wire;
    std::vector<zoo_op_result_t> results;
    std::vector<Stat> stats;
  };

  Call* begin(Done done);
  void sent(Call* call, int code);
  static void completed(Call* call, int code) noexcept;
  void finish(Call* call);
  [[nodiscard]] std::string full(const std::string& path) const;
  void add_to_wire(Call& call, const Operation& operation);

  static void on_event(zhandle_t* handle, int type, int state, const char* path,
                       void* context) noexcept;
  void on_session(int state, const ZooKeeperSession& session);
  static void on_data(int code, const char* value, int bytes, const Stat* stat,
                      const void* data) noexcept;
  static void on_names(int code, const String_vector* names, const void* data) noexcept;
  static void on_stat(int code, const Stat* stat, const void* data) noexcept;
  static void on_multi(int code, const void* data) noexcept;
  static void on_path(int code, const char* path, const void* data) noexcept;

  const std::string chroot_;
  Events events_;
  const std::shared_ptr<Mailbox> mailbox_;
  zhandle_t* handle_ = nullptr;
  std::function<void()> closed_;
  bool closing_ = false;
  std::unordered_map<Call*, std::unique_ptr<Call>> calls_;
};

bool ZooKeeperHandle::Core::init(const Settings& settings) {
  zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
  clientid_t id{};
  id.client_id = static_cast<std::int64_t>(settings.session.id);
  std::memcpy(id.passwd, settings.session.password.data(), sizeof id.passwd);
  handle_ = zookeeper_init2(
      settings.servers.c_str(), &Core::on_event, static_cast<int>(settings.session_timeout.count()),
      settings.session.id == 0 ? nullptr : &id, this, ZOO_NO_LOG_CLIENTENV, &note_complaint);
  if (handle_ == nullptr) return false;
  zoo_set_servers_resolution_delay(handle_, -1);
  return true;
}

// Events: from the client's completion thread

void ZooKeeperHandle::Core::on_event(zhandle_t* handle, int type, int state, const char* path,
                                     void* context) noexcept {
  auto* const core = static_cast<Core*>(context);
  if (type == ZOO_SESSION_EVENT) {
    ZooKeeperSession session;
    if (const clientid_t* id = zoo_client_id(handle); id != nullptr) {
      session.id = static_cast<std::uint64_t>(id->client_id);
      std::memcpy(session.password.data(), id->passwd, session.password.size());
    }
    session.timeout = std::chrono::milliseconds(zoo_recv_timeout(handle));
    core->mailbox_->post(
        [self = core->shared_from_this(), state, session] { self->on_session(state, session); });
    return;
  }
  const auto kind = type == ZOO_CHILD_EVENT ? WatchKind::children : WatchKind::data;
  const bool removed = type == ZOO_DELETED_EVENT;
  core->mailbox_->post([self = core->shared_from_this(), kind, removed, name = std::string(path)] {
    if (!name.starts_with(self->chroot_)) return;
    std::string below = name.substr(self->chroot_.size());
    if (below.empty()) below = "/";
    self->events_.changed(below, kind);
    // One event for both kinds of watch on a node that is gone.
    if (removed) self->events_.changed(below, WatchKind::children);
  });
}

void ZooKeeperHandle::Core::on_session(int state, const ZooKeeperSession& session) {
  // A copy, because the owner may end this handle from there.
  const Events events = events_;
  if (state == ZOO_CONNECTED_STATE) {
    events.connected(session);
  } else if (state == ZOO_EXPIRED_SESSION_STATE || state == ZOO_AUTH_FAILED_STATE) {
    events.expired();
  } else {
    events.disconnected();
  }
}

// Completions: from the same thread

void ZooKeeperHandle::Core::completed(Call* call, int code) noexcept {
  call->reply.error = to_error(code);
  Core* const core = call->core;
  core->mailbox_->post([self = core->shared_from_this(), call] { self->finish(call); });
}

void ZooKeeperHandle::Core::on_data(int code, const char* value, int bytes, const Stat* stat,
                                    const void* data) noexcept {
  auto* const call = static_cast<Call*>(const_cast<void*>(data));
  if (code == ZOK && stat != nullptr) {
    if (value != nullptr && bytes > 0)
      call->reply.node.value.assign(value, static_cast<std::size_t>(bytes));
    call->reply.node.version = stat->version;
    call->reply.node.ephemeral_owner = static_cast<std::uint64_t>(stat->ephemeralOwner);
  }
  completed(call, code);
}

void ZooKeeperHandle::Core::on_names(int code, const String_vector* names,
                                     const void* data) noexcept {
  auto* const call = static_cast<Call*>(const_cast<void*>(data));
  if (code == ZOK && names != nullptr) {
    for (int i = 0; i < names->count; ++i) call->reply.names.emplace_back(names->data[i]);
  }
  completed(call, code);
}

void ZooKeeperHandle::Core::on_stat(int code, const Stat*, const void* data) noexcept {
  completed(static_cast<Call*>(const_cast<void*>(data)), code);
}

void ZooKeeperHandle::Core::on_path(int code, const char*, const void* data) noexcept {
  completed(static_cast<Call*>(const_cast<void*>(data)), code);
}

/// The client has filled the results in. After a refusal one of them says why, those before it say
/// ok and those behind it that they were not looked at.
void ZooKeeperHandle::Core::on_multi(int code, const void* data) noexcept {
  auto* const call = static_cast<Call*>(const_cast<void*>(data));
  auto& operations = call->reply.operations;
  const Error error = to_error(code);
  if (error == make_error_code(MetadataErrc::outcome_unknown) ||
      error == make_error_code(MetadataErrc::session_lost))
    return completed(call, code);
  bool refused = false;
  for (std::size_t i = 0; i < call->results.size(); ++i) {
    const Error one = to_error(call->results[i].err);
    const bool first = one && one != make_error_code(MetadataErrc::not_applied) && !refused;
    std::int32_t version = -1;
    if (call->wire[i].type == ZOO_CREATE_OP) version = 0;
    if (call->wire[i].type == ZOO_SETDATA_OP) version = call->stats[i].version;
    if (code == ZOK)
      operations.emplace_back(Error(), version);
    else
      operations.emplace_back(first ? one : make_error_code(MetadataErrc::not_applied), -1);
    refused = refused || first;
  }
  completed(call, code == ZOK || refused ? ZOK : code);
}

// Requests: on the owner's thread

ZooKeeperHandle::Core::Call* ZooKeeperHandle::Core::begin(Done done) {
  auto call = std::make_unique<Call>();
  call->core = this;
  call->done = std::move(done);
  Call* const raw = call.get();
  calls_.emplace(raw, std::move(call));
  return raw;
}

/// A request that the client did not take has no completion.
void ZooKeeperHandle::Core::sent(Call* call, int code) {
  if (code == ZOK) return;
  const Error error = to_error(code);
  call->reply.error = error == make_error_code(MetadataErrc::outcome_unknown)
                          ? make_error_code(MetadataErrc::unavailable)
                          : error;
  mailbox_->post([self = shared_from_this(), call] { self->finish(call); });
}

void ZooKeeperHandle::Core::finish(Call* call) {
  const auto found = calls_.find(call);
  if (found == calls_.end()) return;
  const auto owned = std::move(found->second);
  calls_.erase(found);
  owned->done(std::move(owned->reply));
}

std::string ZooKeeperHandle::Core::full(const std::string& path) const {
  if (chroot_.empty()) return path;
  return path == "/" ? chroot_ : chroot_ + path;
}

void ZooKeeperHandle::Core::get(const std::string& path, Done done) {
  Call* const call = begin(std::move(done));
  sent(call, zoo_aget(handle_, full(path).c_str(), 0, &Core::on_data, call));
}

void ZooKeeperHandle::Core::children(const std::string& path, Done done) {
  Call* const call = begin(std::move(done));
  sent(call, zoo_aget_children(handle_, full(path).c_str(), 0, &Core::on_names, call));
}

void ZooKeeperHandle::Core::watch(const std::string& path, WatchKind kind, Done done) {
  Call* const call = begin(std::move(done));
  const std::string whole = full(path);
  const int code = kind == WatchKind::data
                       ? zoo_aexists(handle_, whole.c_str(), 1, &Core::on_stat, call)
                       : zoo_aget_children(handle_, whole.c_str(), 1, &Core::on_names, call);
  sent(call, code);
}

void ZooKeeperHandle::Core::sync(Done done) {
  Call* const call = begin(std::move(done));
  sent(call, zoo_async(handle_, full("/").c_str(), &Core::on_path, call));
}

/// Parents first; that one is there already is as good.
void ZooKeeperHandle::Core::make_chroot(Done done) {
  const auto create = [this](const std::string& path, Done then) {
    Call* const call = begin(std::move(then));
    sent(call, zoo_acreate(handle_, path.c_str(), "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT,
                           &Core::on_path, call));
  };
  for (std::size_t end = chroot_.find('/', 1); end != std::string::npos;
       end = chroot_.find('/', end + 1))
    create(chroot_.substr(0, end), [](const ZooKeeperReply&) {});
  create(chroot_, std::move(done));
}

void ZooKeeperHandle::Core::add_to_wire(Call& call, const Operation& operation) {
  const std::size_t at = call.wire.size();
  zoo_op_t& op = call.wire.emplace_back();
  call.paths.push_back(std::visit([this](const auto& any) { return full(any.path); }, operation));
  const char* const path = call.paths.back().c_str();
  if (const auto* create = std::get_if<Create>(&operation)) {
    zoo_create_op_init(&op, path, create->value.data(), static_cast<int>(create->value.size()),
                       &ZOO_OPEN_ACL_UNSAFE,
                       create->mode == CreateMode::ephemeral ? ZOO_EPHEMERAL : ZOO_PERSISTENT,
                       nullptr, 0);
  } else if (const auto* set = std::get_if<SetValue>(&operation)) {
    zoo_set_op_init(&op, path, set->value.data(), static_cast<int>(set->value.size()), set->version,
                    &call.stats[at]);
  } else if (const auto* remove = std::get_if<Remove>(&operation)) {
    zoo_delete_op_init(&op, path, remove->version);
  } else if (const auto* check = std::get_if<Check>(&operation)) {
    zoo_check_op_init(&op, path, check->version);
  }
}

void ZooKeeperHandle::Core::multi(const std::vector<Operation>& operations, Done done) {
  Call* const call = begin(std::move(done));
  call->paths.reserve(operations.size());  // pointers into these stay good
  call->wire.reserve(operations.size());
  call->stats.resize(operations.size());
  call->results.resize(operations.size());
  for (const auto& operation : operations) add_to_wire(*call, operation);
  // The client (3.8) frees memory that is not its own when it refuses a multi because the session
  // has ended. Nobody may have heard of that yet; and while there is a connection it cannot end.
  if (const int state = zoo_state(handle_); state != ZOO_CONNECTED_STATE)
    return sent(call, state == ZOO_EXPIRED_SESSION_STATE ? ZSESSIONEXPIRED : ZCONNECTIONLOSS);
  sent(call, zoo_amulti(handle_, static_cast<int>(call->wire.size()), call->wire.data(),
                        call->results.data(), &Core::on_multi, call));
}

// The end

void ZooKeeperHandle::Core::close(std::function<void()> done) {
  if (closing_) return;
  closing_ = true;
  closed_ = std::move(done);
  const auto self = shared_from_this();
  const bool started = run_detached([self, handle = handle_] {
    zookeeper_close(handle);
    self->mailbox_->post([self] { self->closed_(); });
  });
  // Nobody can end the client's threads then, and they go on using it.
  if (!started) new std::shared_ptr<Core>(self);
}

void ZooKeeperHandle::Core::detach() {
  close([] {});
  mailbox_->close();
  events_ = {};
  closed_ = nullptr;
  for (const auto& [call, owned] : calls_) {
    const Done done = std::exchange(owned->done, nullptr);
    ZooKeeperReply lost;
    lost.error = MetadataErrc::outcome_unknown;
    if (done) done(std::move(lost));
  }
}

// The face

std::unique_ptr<ZooKeeperHandle> ZooKeeperHandle::open(const Settings& settings,
                                                       base::Runtime& runtime, Events events) {
  auto core = std::make_shared<Core>(settings.chroot, runtime, std::move(events));
  if (!core->init(settings)) return nullptr;
  return std::unique_ptr<ZooKeeperHandle>(new ZooKeeperHandle(std::move(core)));
}

ZooKeeperHandle::ZooKeeperHandle(std::shared_ptr<Core> core) : core_(std::move(core)) {}
ZooKeeperHandle::~ZooKeeperHandle() { core_->detach(); }

void ZooKeeperHandle::get(const std::string& path, Done done) { core_->get(path, std::move(done)); }
void ZooKeeperHandle::children(const std::string& path, Done done) {
  core_->children(path, std::move(done));
}
void ZooKeeperHandle::multi(const std::vector<Operation>& operations, Done done) {
  core_->multi(operations, std::move(done));
}
void ZooKeeperHandle::watch(const std::string& path, WatchKind kind, Done done) {
  core_->watch(path, kind, std::move(done));
}
void ZooKeeperHandle::sync(Done done) { core_->sync(std::move(done)); }
void ZooKeeperHandle::make_chroot(Done done) { core_->make_chroot(std::move(done)); }
std::size_t ZooKeeperHandle::in_flight() const { return core_->in_flight(); }
void ZooKeeperHandle::close(std::function<void()> done) { core_->close(std::move(done)); }

std::string ZooKeeperHandle::last_complaint() {
  const std::lock_guard lock(complaint().mutex);
  return complaint().text;
}

std::size_t wire_bytes(const std::vector<Operation>& operations, const std::string& chroot) {
  constexpr std::size_t kPerOperation = 80;  // header, lengths, flags, version, access list
  std::size_t bytes = kPerOperation;
  for (const auto& operation : operations) {
    bytes += kPerOperation + chroot.size();
    bytes += std::visit([](const auto& any) { return any.path.size(); }, operation);
    if (const auto* create = std::get_if<Create>(&operation)) bytes += create->value.size();
    if (const auto* set = std::get_if<SetValue>(&operation)) bytes += set->value.size();
  }
  return bytes;
}

}  // namespace mq::metadata
