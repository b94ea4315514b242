#include "controller/candidate.h"

#include <algorithm>

#include "base/log.h"
#include "controller/error.h"
#include "controller/refusals.h"
#include "metadata/znode_layout.h"

namespace mq::controller {
namespace {

namespace layout = metadata::layout;
using metadata::MetadataErrc;
using metadata::Operation;

/// A watch is a hint: so often the node is read again without one.
constexpr std::chrono::seconds kReadAgain{60};
constexpr std::chrono::milliseconds kAfterFailure{500};
/// After elections that led to nothing: each is an event for all other brokers.
constexpr base::Duration kPauseMin = std::chrono::milliseconds(500);
constexpr base::Duration kPauseMax = std::chrono::seconds(10);

/// The socket on which a killed process listens may outlive its connections for so long.
constexpr base::Duration kDyingFor = std::chrono::seconds(1);

/// After an office in which no broker was heard of: the others stand within moments, if they live.
constexpr base::Duration kUnheardPauseMin = std::chrono::seconds(1);
constexpr base::Duration kUnheardPauseMax = std::chrono::seconds(30);

/// A controller that has been there for so long has loaded what this broker could not.
constexpr base::Duration kStays = std::chrono::seconds(2);

bool is(const Error& error, MetadataErrc code) { return error == make_error_code(code); }

std::optional<ControllerAddress> address_in(const metadata::Node& node) {
  const auto value = metadata::decode_controller(node.value);
  if (!value) return std::nullopt;
  return ControllerAddress{value->broker, value->advertised};
}

}  // namespace

Candidate::Candidate(ControllerConfig config, metadata::MetadataStore& store, Member& member,
                     base::Runtime& home)
    : config_(std::move(config)),
      store_(store),
      member_(member),
      home_(home),
      writer_(store, home),
      changed_(home),
      tasks_(home) {}

Candidate::~Candidate() = default;

void Candidate::start() {
  std::weak_ptr<bool> alive = alive_;
  store_.on_session_lost([this, alive] {
    if (!alive.expired()) on_session_lost();
  });
  member_.on_epoch([this, alive](model::BrokerEpoch) {
    if (!alive.expired()) wake();
  });
  tasks_.spawn("standing for controller", run());
}

/// The office went with the session.
void Candidate::on_session_lost() {
  if (controller_) controller_->resign();
  wake();
}

void Candidate::wake() {
  woken_ = true;
  changed_.notify_all();
}

asio::awaitable<void> Candidate::run() {
  while (!stopping_) {
    woken_ = false;
    const auto looked = co_await look();
    const auto due = next_look(looked.has_value());
    bool in_time = true;
    while (in_time && !woken_ && !stopping_) in_time = co_await changed_.wait_until(due);
  }
  co_await end_controller();
}

base::TimePoint Candidate::next_look(bool looked) const {
  const auto now = home_.now();
  auto due = now + (looked ? base::Duration(kReadAgain) : kAfterFailure);
  if (leader_ && !trouble_.empty()) due = std::min(due, now + kStays);
  return now < stand_again_at_ ? std::min(due, stand_again_at_) : due;
}

/// Reads who leads, stands for the office if nobody does, and keeps a controller only as long as it
/// is this session's. An error: something has to be tried again soon.
asio::awaitable<Result<void>> Candidate::look() {
  if (controller_ && controller_->resigned()) co_await end_controller();
  if (!member_.registered()) co_return make_error_code(MetadataErrc::session_lost);
  MQ_CO_TRY_VOID(co_await watch_leader());
  const auto node = co_await store_.get(std::string(layout::kControllerLeader));
  if (!node && !is(node.error(), MetadataErrc::not_found)) co_return node.error();
  const bool mine = node && node->ephemeral_owner == store_.session();
  if (mine && controller_) co_return Result<void>();
  if (controller_) {
    base::log_warning("controller", "{} is not this broker's any more", layout::kControllerLeader);
    co_await end_controller();
  }
  if (stopping_) co_return Result<void>();
  if (mine) {
    // From an election whose outcome could not be read: another one makes its epoch certain.
    MQ_CO_TRY_VOID(co_await release());
    wake();
    co_return Result<void>();
  }
  set_leader(node ? address_in(*node) : std::nullopt);
  if (node) {
    unheard_pause_ = {};
    if (home_.now() >= leader_since_ + kStays) trouble_.clear();
    co_return Result<void>();
  }
  if (home_.now() < stand_again_at_) co_return Result<void>();
  co_return co_await stand();
}

/// Before the read, so that what comes after it is heard of.
asio::awaitable<Result<void>> Candidate::watch_leader() {
  if (watching_) co_return Result<void>();
  watching_ = true;
  std::weak_ptr<bool> alive = alive_;
  std::function<void()> fire = [this, alive] {
    if (alive.expired()) return;
    watching_ = false;
    wake();
  };
  const auto watched = co_await store_.watch(std::string(layout::kControllerLeader),
                                             metadata::WatchKind::data, std::move(fire));
  if (!watched) watching_ = false;
  co_return watched;
}

void Candidate::lost_controller() {
  if (stopping_ || looking_for_leader_ || config_.network == nullptr) return;
  if (!leader_ || leader_->broker == config_.broker) return;
  looking_for_leader_ = true;
  tasks_.spawn("looking for the controller", look_for(*leader_));
}

asio::awaitable<void> Candidate::look_for(ControllerAddress leader) {
  const auto name = leader;
  const bool ended = co_await end_office_of_dead(std::move(leader));
  looking_for_leader_ = false;
  if (!ended || stopping_) co_return;
  base::log_warning("controller",
                    "the process of the controller, broker {}, has ended: {} refuses connections; "
                    "its office is ended before its session",
                    name.broker, name.advertised.text());
  wake();
}

/// False: it lives, or nobody knows. The check names the election, so that no later office is
/// ended; and one that is ended by mistake costs an election, nothing else (CTL-1).
asio::awaitable<bool> Candidate::end_office_of_dead(ControllerAddress leader) {
  std::vector<std::string> paths{std::string(layout::kControllerEpoch),
                                 std::string(layout::kControllerLeader)};
  const auto nodes = co_await store_.get_many(std::move(paths));
  if (!nodes || !nodes->front() || !nodes->back()) co_return false;
  if (address_in(*nodes->back()) != leader) co_return false;
  const auto since = home_.now();
  for (int refused = 0; refused < kRefusalsOfTheDead;) {
    const auto due = home_.now() + kBetweenRefusals;
    bool in_time = home_.now() > since;
    while (in_time && !stopping_) in_time = co_await changed_.wait_until(due);
    if (stopping_ || leader_ != leader) co_return false;
    const bool refuses = co_await refuses_connections(*config_.network, home_, leader.advertised);
    refused = refuses ? refused + 1 : 0;
    if (!refuses && home_.now() - since >= kDyingFor) co_return false;
  }
  if (stopping_ || !member_.registered()) co_return false;
  std::vector<Operation> operations;
  operations.emplace_back(
      metadata::Check(std::string(layout::kControllerEpoch), nodes->front()->version));
  operations.emplace_back(
      metadata::Remove(std::string(layout::kControllerLeader), metadata::kAnyVersion));
  const auto removed = co_await store_.multi(std::move(operations));
  co_return removed && removed->applied();
}

/// CTL-1: one multi takes the office and raises the epoch that every write of a controller names.
asio::awaitable<Result<void>> Candidate::stand() {
  const std::string epoch_path(layout::kControllerEpoch);
  const auto before = co_await rising_epoch();
  if (!before) co_return before.error();
  const auto session = store_.session();
  const auto tag = writer_.next_tag();
  const metadata::ControllerValue leader{tag, config_.broker, config_.advertised};
  const metadata::ControllerEpochValue epoch{tag, config_.broker};
  std::vector<Operation> operations;
  operations.emplace_back(metadata::Create(std::string(layout::kControllerLeader),
                                           metadata::encode(leader),
                                           metadata::CreateMode::ephemeral));
  operations.emplace_back(metadata::SetValue(epoch_path, metadata::encode(epoch), before->version));
  const auto stood = co_await writer_.commit(std::move(operations), epoch_path, tag);
  if (!stood) co_return stood.error();
  const Error refused = stood->first_error();
  if (is(refused, MetadataErrc::already_exists) || is(refused, MetadataErrc::bad_version)) {
    wake();  // somebody was quicker
    co_return Result<void>();
  }
  if (refused) co_return refused;
  if (store_.session() != session || !store_.online())
    co_return make_error_code(MetadataErrc::session_lost);
  co_return co_await lead(before->version + 1);
}

asio::awaitable<Result<metadata::Node>> Candidate::load_epoch() {
  const std::string path(layout::kControllerEpoch);
  auto node = co_await store_.get(path);
  if (node || !is(node.error(), MetadataErrc::not_found)) co_return node;
  const metadata::ControllerEpochValue value{writer_.next_tag(), config_.broker};
  const auto made = co_await store_.create(path, metadata::encode(value));
  // Made by us, by another broker at the same moment, or with an answer that was lost: read.
  const bool read_again = made || is(made.error(), MetadataErrc::already_exists) ||
                          is(made.error(), MetadataErrc::outcome_unknown);
  if (!read_again) co_return made.error();
  co_return co_await store_.get(path);
}

/// The node of the epoch, at no lower version than any epoch that this broker has heard of.
asio::awaitable<Result<metadata::Node>> Candidate::rising_epoch() {
  auto node = co_await load_epoch();
  if (!node) co_return node;
  const auto known = std::max(epoch_min_, known_epoch_ ? known_epoch_() : -1);
  if (node->version >= known) co_return node;
  base::log_warning(
      "controller",
      "{} has version {}, and there are images of controller epoch {}: was it removed, "
      "or the metadata store restored from a copy? It is raised",
      layout::kControllerEpoch, node->version, known);
  const metadata::ControllerEpochValue value{writer_.next_tag(), config_.broker};
  MQ_CO_TRY_VOID(co_await writer_.raise(std::string(layout::kControllerEpoch),
                                        metadata::encode(value), node->version, known));
  co_return co_await load_epoch();
}

asio::awaitable<Result<void>> Candidate::lead(std::int32_t controller_epoch) {
  std::weak_ptr<bool> alive = alive_;
  controller_ =
      std::make_unique<Controller>(config_, store_, home_, controller_epoch, [this, alive] {
        if (!alive.expired()) wake();
      });
  const auto loaded = co_await controller_->load();
  if (stopping_) co_return Result<void>();
  if (!loaded || controller_->resigned()) {
    const Error why = loaded ? make_error_code(ControllerErrc::not_controller) : loaded.error();
    note_failure(why);
    co_await end_controller();
    co_return why;
  }
  trouble_.clear();
  said_ = {};
  pause_ = {};
  ready_ = true;
  base::log_info("controller", "this broker is the controller, in epoch {}", controller_epoch);
  set_leader(ControllerAddress{config_.broker, config_.advertised});
  for (const auto& listener : controller_listeners_) listener(controller_.get());
  co_return Result<void>();
}

/// Nobody is kept from standing meanwhile: another broker may fare better.
void Candidate::note_failure(Error error) {
  trouble_ = fmt::format("this broker was elected controller and cannot load the metadata: {}",
                         error.message());
  if (error != said_) base::log_error("controller", "{}; it stands again later", trouble_);
  said_ = error;
  pause_ = std::clamp(2 * pause_, kPauseMin, kPauseMax);
  stand_again_at_ = home_.now() + pause_;
}

/// Only while nobody else does: with every office that led to nothing it waits for longer.
void Candidate::let_others_stand() {
  unheard_pause_ = std::clamp(2 * unheard_pause_, kUnheardPauseMin, kUnheardPauseMax);
  stand_again_at_ = home_.now() + unheard_pause_;
}

// The end of an office

asio::awaitable<void> Candidate::end_controller() {
  if (!controller_) co_return;
  controller_->resign();
  if (std::exchange(ready_, false)) {
    for (const auto& listener : controller_listeners_) listener(nullptr);
  }
  co_await controller_->stop();
  epoch_min_ = std::max(epoch_min_, controller_->newest_epoch_seen());
  if (controller_->unheard())
    let_others_stand();
  else
    unheard_pause_ = {};
  const auto released = co_await release();
  if (!released)
    base::log_info("controller", "the office of controller ends with the session: {}",
                   released.error().message());
  controller_.reset();
}

/// Removes /ctl/leader if it is of this session. Nobody else can have taken it meanwhile.
asio::awaitable<Result<void>> Candidate::release() {
  const std::string path(layout::kControllerLeader);
  if (!store_.online()) co_return make_error_code(MetadataErrc::session_lost);
  const auto node = co_await store_.get(path);
  if (!node && is(node.error(), MetadataErrc::not_found)) co_return Result<void>();
  if (!node) co_return node.error();
  if (node->ephemeral_owner != store_.session()) co_return Result<void>();
  const auto removed = co_await store_.remove(path, node->version);
  if (!removed && is(removed.error(), MetadataErrc::not_found)) co_return Result<void>();
  co_return removed;
}

void Candidate::set_leader(std::optional<ControllerAddress> leader) {
  if (leader == leader_) return;
  leader_ = std::move(leader);
  leader_since_ = home_.now();
  for (const auto& listener : leader_listeners_) listener(leader_);
}

asio::awaitable<void> Candidate::stop() {
  stopping_ = true;
  writer_.hurry();
  if (controller_) controller_->resign();
  changed_.notify_all();
  co_await tasks_.wait();
}

}  // namespace mq::controller
