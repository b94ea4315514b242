#include "controller/member.h"

#include <algorithm>

#include "base/log.h"
#include "controller/error.h"
#include "metadata/znode_layout.h"

namespace mq::controller {
namespace {

namespace layout = metadata::layout;
using metadata::MetadataErrc;
using metadata::Operation;

constexpr std::chrono::milliseconds kLookAgain{200};
constexpr std::chrono::seconds kRegisterAgain{1};
constexpr std::chrono::seconds kTakenFor{60};
constexpr std::int64_t kForEver = std::numeric_limits<std::int64_t>::max();

bool is(const Error& error, MetadataErrc code) { return error == make_error_code(code); }

Result<bool> failed(const Error& error) {
  return Result<bool>(boost::system::in_place_error, error);
}

/// What a heartbeat found instead of the registration's two nodes; empty: they are there.
Error ended_registration(const metadata::MultiResult& beat) {
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& error = beat.operations[i].error;
    if (is(error, MetadataErrc::not_found) || is(error, MetadataErrc::bad_version)) return error;
  }
  return {};
}

}  // namespace

/// Both nodes of a broker, as they were found.
struct Member::Found {
  std::optional<metadata::Node> epoch;
  std::optional<metadata::Node> live;
};

Member::Member(MemberConfig config, metadata::MetadataStore& store, base::Runtime& home)
    : config_(std::move(config)),
      store_(store),
      home_(home),
      writer_(store, home),
      stopped_(home),
      tasks_(home) {}

Member::~Member() = default;

// Registration

asio::awaitable<Result<void>> Member::start() {
  MQ_CO_TRY_VOID(co_await make_folders());
  const auto deadline = home_.now() + config_.earlier_session_max;
  std::optional<metadata::Node> before;
  while (true) {
    const auto found = co_await look();
    if (!found) co_return found.error();
    if (!before) before = found->epoch;
    const auto registered = co_await try_register(*found);
    if (!registered) co_return registered.error();
    if (*registered) break;
    MQ_CO_TRY_VOID(may_wait_for(*found, deadline));
    co_await home_.sleep_for(kLookAgain);
  }
  if (before) compare_disks(*before);
  std::weak_ptr<bool> alive = alive_;
  store_.on_session_lost([this, alive] {
    if (!alive.expired()) on_session_lost();
  });
  if (!store_.online()) co_return make_error_code(MetadataErrc::session_lost);
  registered_ = true;
  begin_lease();
  tasks_.spawn("keeping the lease", keep_lease());
  co_return Result<void>();
}

asio::awaitable<Result<void>> Member::make_folders() {
  const auto nodes = co_await store_.get_many(layout::folders());
  if (!nodes) co_return nodes.error();
  for (std::size_t i = 0; i < nodes->size(); ++i) {
    if ((*nodes)[i]) continue;
    const auto made = co_await store_.create(layout::folders()[i], "");
    if (!made && !is(made.error(), MetadataErrc::already_exists)) co_return made.error();
  }
  co_return Result<void>();
}

asio::awaitable<Result<Member::Found>> Member::look() {
  std::vector<std::string> paths{layout::broker_epoch(config_.broker),
                                 layout::broker_live(config_.broker)};
  auto nodes = co_await store_.get_many(std::move(paths));
  if (!nodes) co_return nodes.error();
  Found found;
  found.epoch = std::move(nodes->front());
  found.live = std::move(nodes->back());
  co_return std::move(found);
}

/// False: the live node is somebody's, or somebody was quicker.
asio::awaitable<Result<bool>> Member::try_register(Found found) {
  if (found.live && found.live->ephemeral_owner == store_.session())
    co_return co_await adopt(std::move(found));
  if (found.live) co_return false;
  const auto session = store_.session();
  const auto tag = writer_.next_tag();
  const metadata::BrokerEpochValue epoch{tag, config_.incarnation, config_.disks,
                                         config_.advertised, config_.rack};
  const metadata::BrokerLiveValue live{tag, config_.incarnation, config_.advertised};
  const auto path = layout::broker_epoch(config_.broker);
  std::vector<Operation> operations;
  if (found.epoch)
    operations.emplace_back(
        metadata::SetValue(path, metadata::encode(epoch), found.epoch->version));
  else
    operations.emplace_back(metadata::Create(path, metadata::encode(epoch)));
  operations.emplace_back(metadata::Create(layout::broker_live(config_.broker),
                                           metadata::encode(live),
                                           metadata::CreateMode::ephemeral));
  registration_sent_ = home_.now();
  const auto made = co_await writer_.commit(std::move(operations), path, tag);
  const Error error = refusal(made);
  if (is(error, MetadataErrc::already_exists) || is(error, MetadataErrc::bad_version))
    co_return false;
  if (error) co_return failed(error);
  if (store_.session() != session || !store_.online()) co_return failed(MetadataErrc::session_lost);
  epoch_ = model::BrokerEpoch(found.epoch ? found.epoch->version + 1 : 0);
  live_version_ = 0;
  co_return true;
}

/// The live node is of this session: a registration whose answer was lost and could not be read.
asio::awaitable<Result<bool>> Member::adopt(Found found) {
  const auto live = metadata::decode_broker_live(found.live->value);
  const auto tag = found.epoch ? metadata::decode_writer(found.epoch->value)
                               : Result<metadata::WriterTag>(MetadataErrc::not_found);
  if (live && tag && live->writer == *tag && live->incarnation == config_.incarnation) {
    epoch_ = model::BrokerEpoch(found.epoch->version);
    live_version_ = found.live->version;
    co_return true;
  }
  const auto removed =
      co_await store_.remove(layout::broker_live(config_.broker), found.live->version);
  if (!removed && !is(removed.error(), MetadataErrc::not_found)) co_return failed(removed.error());
  co_return false;
}

/// An earlier process with the same directories is dead, because their locks are ours, and so is
/// one with our own address, because we listen there: its session ends by itself. Any other holder
/// of the node is another broker.
Result<void> Member::may_wait_for(const Found& found, base::TimePoint deadline) {
  if (!found.live) return {};
  const auto live = metadata::decode_broker_live(found.live->value);
  const auto address = live ? live->advertised.text() : std::string("an unknown address");
  const bool our_address = live && live->advertised == config_.advertised;
  if ((!is_ours(found) && !our_address) || home_.now() >= deadline) {
    base::log_error("controller", "another live broker at {} is registered as broker {}", address,
                    config_.broker);
    return make_error_code(ControllerErrc::broker_id_in_use);
  }
  if (!std::exchange(told_of_waiting_, true)) {
    const auto text =
        fmt::format("waiting for the end of the session that broker {} had before it was restarted",
                    config_.broker);
    base::log_info("controller", "{}", text);
    if (waiting_) waiting_(text);
  }
  return {};
}

bool Member::is_ours(const Found& found) const {
  if (!found.epoch) return false;
  const auto epoch = metadata::decode_broker_epoch(found.epoch->value);
  if (!epoch) return false;
  if (epoch->incarnation == config_.incarnation) return true;
  return std::ranges::any_of(epoch->disks, [this](const base::Uuid& disk) {
    return std::ranges::count(config_.disks, disk) > 0;
  });
}

void Member::compare_disks(const metadata::Node& epoch) {
  const auto before = metadata::decode_broker_epoch(epoch.value);
  if (!before) return;
  for (const auto& disk : before->disks) {
    if (std::ranges::count(config_.disks, disk) > 0) continue;
    auto text = fmt::format(
        "the disk {} that broker {} had at its last start is not there: taken away, emptied or "
        "replaced; partitions that were on it may have lost everything",
        disk.hex(), config_.broker);
    base::log_warning("controller", "{}", text);
    warnings_.push_back(std::move(text));
  }
}

/// The registration is an acknowledged write like a heartbeat.
void Member::begin_lease() {
  const auto session_time = store_.session_timeout();
  const auto end = session_time == base::Duration::zero()
                       ? kForEver
                       : (registration_sent_ + session_time / 2).time_since_epoch().count();
  lease_end_.store(end, std::memory_order_release);
}

// A lost session is followed by another registration

void Member::on_session_lost() { register_anew(); }

void Member::register_anew() {
  registered_ = false;
  lease_end_.store(0, std::memory_order_relaxed);
  heartbeat_version_.reset();
  if (registering_ || stopping_) return;
  registering_ = true;
  tasks_.spawn("registering again", keep_registering());
}

asio::awaitable<void> Member::keep_registering() {
  std::string said;
  std::optional<base::TimePoint> taken_since;
  while (!stopping_) {
    const auto registered = co_await register_again();
    if (registered && *registered) break;
    if (!registered) taken_since.reset();
    if (registered && !taken_since) taken_since = home_.now();
    if (taken_since && home_.now() - *taken_since >= kTakenFor && taken_) {
      base::log_error("controller", "another broker has been registered as broker {} for {} s",
                      config_.broker, kTakenFor.count());
      std::exchange(taken_, nullptr)();
    }
    auto why = registered ? std::string("another broker is registered under this id")
                          : registered.error().message();
    if (why != said) base::log_warning("controller", "not registered again yet: {}", why);
    said = std::move(why);
    const auto due = home_.now() + kRegisterAgain;
    bool in_time = true;
    while (in_time && !stopping_) in_time = co_await stopped_.wait_until(due);
  }
  registering_ = false;
  if (stopping_) co_return;
  if (!store_.online()) co_return on_session_lost();
  registered_ = true;
  base::log_info("controller", "registered again, under broker epoch {}", epoch_);
  // Whoever sees the new lease has seen the new epoch.
  for (const auto& listener : listeners_) listener(epoch_);
  begin_lease();
}

asio::awaitable<Result<bool>> Member::register_again() {
  const auto renewed = co_await store_.renew();
  if (!renewed) co_return failed(renewed.error());
  auto found = co_await look();
  if (!found) co_return failed(found.error());
  const auto raised = co_await keep_epoch_rising(*found);
  if (!raised) co_return failed(raised.error());
  const bool ours = found->live && found->live->ephemeral_owner == store_.session();
  const auto registered = co_await try_register(std::move(*found));
  if (!registered || *registered || !ours) co_return registered;
  // The remains of the registration before were in the way, and are removed.
  found = co_await look();
  if (!found) co_return failed(found.error());
  co_return co_await try_register(std::move(*found));
}

/// CTL-4, also when the epoch's node was removed by hand or the store was restored from a copy: the
/// node gets the version that this process has had, and the registration the one above.
asio::awaitable<Result<void>> Member::keep_epoch_rising(Found& found) {
  const auto known = static_cast<std::int32_t>(epoch_.value());
  if (found.epoch && found.epoch->version >= known) co_return Result<void>();
  // Of another broker that has this id now: it stays as it is.
  if (found.live && found.live->ephemeral_owner != store_.session()) co_return Result<void>();
  const auto path = layout::broker_epoch(config_.broker);
  base::log_warning("controller",
                    "the metadata has broker {} in epoch {}, and this process has been registered "
                    "under {}: was the node {} removed, or the store restored from a copy?",
                    config_.broker, found.epoch ? found.epoch->version : -1, epoch_, path);
  metadata::BrokerEpochValue value;
  value.writer = writer_.next_tag();
  value.incarnation = config_.incarnation;
  value.disks = config_.disks;
  value.advertised = config_.advertised;
  value.rack = config_.rack;
  if (!found.epoch) {
    const auto made = co_await store_.create(path, metadata::encode(value));
    if (!made) co_return made.error();
    found.epoch = metadata::Node{};
  }
  MQ_CO_TRY_VOID(
      co_await writer_.raise(path, metadata::encode(value), found.epoch->version, known));
  auto again = co_await look();
  if (!again) co_return again.error();
  found = std::move(*again);
  co_return Result<void>();
}

// The lease

asio::awaitable<void> Member::keep_lease() {
  while (!stopping_) {
    const auto session_time = store_.session_timeout();
    if (session_time == base::Duration::zero()) break;
    const auto due = home_.now() + session_time / 6;
    beat_now_ = false;
    if (registered_) {
      co_await watch_registration();
      const auto beaten = co_await beat(session_time);
      if (!beaten) heartbeat_version_.reset();
    }
    bool in_time = true;
    while (in_time && !stopping_ && !beat_now_) in_time = co_await stopped_.wait_until(due);
  }
}

/// Somebody who takes this process for dead ends its registration: the lease is to go at once then.
asio::awaitable<void> Member::watch_registration() {
  if (watching_) co_return;
  watching_ = true;
  std::weak_ptr<bool> alive = alive_;
  std::function<void()> fire = [this, alive] {
    if (alive.expired()) return;
    watching_ = false;
    beat_now_ = true;
    stopped_.notify_all();
  };
  const auto watched = co_await store_.watch(layout::broker_live(config_.broker),
                                             metadata::WatchKind::data, std::move(fire));
  if (!watched) watching_ = false;
}

/// An acknowledged write on the handle that holds the registration: reads may be answered by a
/// server that has lost the others. The lease counts from when it was sent.
asio::awaitable<Result<void>> Member::beat(base::Duration session_time) {
  const auto path = layout::broker_heartbeat(config_.broker);
  const auto epoch = epoch_;
  if (!heartbeat_version_) {
    const auto node = co_await store_.get(path);
    if (!node && !is(node.error(), MetadataErrc::not_found)) co_return node.error();
    if (node) heartbeat_version_ = node->version;
  }
  const auto sent = home_.now();
  const metadata::HeartbeatValue value{writer_.next_tag()};
  std::vector<Operation> operations;
  operations.emplace_back(metadata::Check(layout::broker_epoch(config_.broker),
                                          static_cast<std::int32_t>(epoch.value())));
  operations.emplace_back(metadata::Check(layout::broker_live(config_.broker), live_version_));
  if (heartbeat_version_)
    operations.emplace_back(metadata::SetValue(path, metadata::encode(value), *heartbeat_version_));
  else
    operations.emplace_back(metadata::Create(path, metadata::encode(value)));
  const auto written = co_await store_.multi(std::move(operations));
  if (!written) co_return written.error();
  if (!registered_ || epoch != epoch_) co_return Result<void>();
  if (const Error gone = ended_registration(*written)) {
    base::log_warning("controller",
                      "the metadata does not have this broker's registration in epoch {} any more "
                      "({}): it registers again",
                      epoch_, gone.message());
    register_anew();
    co_return gone;
  }
  if (const auto error = written->first_error()) co_return error;
  heartbeat_version_ = written->operations.back().version;
  lease_end_.store((sent + session_time / 2).time_since_epoch().count(), std::memory_order_release);
  co_return Result<void>();
}

// The end

asio::awaitable<void> Member::stop() {
  stopping_ = true;
  writer_.hurry();
  stopped_.notify_all();
  co_await tasks_.wait();
  if (!std::exchange(registered_, false)) co_return;
  lease_end_.store(0, std::memory_order_relaxed);
  std::vector<Operation> operations;
  operations.emplace_back(metadata::Check(layout::broker_epoch(config_.broker),
                                          static_cast<std::int32_t>(epoch_.value())));
  operations.emplace_back(
      metadata::Remove(layout::broker_live(config_.broker), metadata::kAnyVersion));
  const auto left = co_await store_.multi(std::move(operations));
  if (const auto error = refusal(left); error && !is(error, MetadataErrc::not_found))
    base::log_warning("controller", "the cluster will notice later that this broker left: {}",
                      error.message());
}

}  // namespace mq::controller
