#include "base/log.h"
#include "base/mutants.h"
#include "controller/controller_impl.h"
#include "controller/refusals.h"
#include "metadata/znode_layout.h"

// A process that is known to be dead is not waited for until its session ends (CTL-9).
namespace mq::controller {
namespace {

namespace layout = metadata::layout;

/// A new controller has heard of nobody yet: they have to learn of it first.
constexpr int kRefusalsAtFirst = 5;
/// A process that is killed may lose its connections before the socket on which it listens. One
/// that is connected to for longer lives.
constexpr base::Duration kDyingFor = std::chrono::seconds(1);

}  // namespace

void Controller::Impl::lost_connection(model::BrokerId broker, model::BrokerEpoch epoch) {
  look_for(broker, epoch, kRefusalsOfTheDead);
}

void Controller::Impl::look_for_all() {
  for (const auto& info : members_.infos()) {
    if (info.alive) look_for(info.id, info.epoch, kRefusalsAtFirst);
  }
}

void Controller::Impl::look_for(model::BrokerId broker, model::BrokerEpoch epoch, int refusals) {
  if (resigned() || config_.network == nullptr || broker == config_.broker) return;
  if (MQ_MUTANT("the_dead_are_waited_for")) return;
  if (!members_.is_live(broker, epoch) || is_spared(broker)) return;
  const auto [looked_for, first] = looked_for_.try_emplace(broker);
  if (!first) {
    looked_for->second = epoch;
    return;
  }
  tasks_.spawn("looking for a broker", find_out_about(broker, epoch, refusals));
}

asio::awaitable<void> Controller::Impl::find_out_about(model::BrokerId broker,
                                                       model::BrokerEpoch epoch, int refusals) {
  bool dead = co_await is_dead(broker, epoch, refusals);
  while (!dead && looked_for_.at(broker)) {
    epoch = *std::exchange(looked_for_.at(broker), std::nullopt);
    dead = co_await is_dead(broker, epoch, kRefusalsOfTheDead);
  }
  looked_for_.erase(broker);
  if (dead) co_await end_registration(broker, epoch);
}

/// Its connection has ended, its host says again and again that nobody listens, and it does not ask
/// for anything, though it could reach this broker where a firewall keeps this one from it.
asio::awaitable<bool> Controller::Impl::is_dead(model::BrokerId broker, model::BrokerEpoch epoch,
                                                int refusals) {
  const auto since = home_.now();
  const auto silent = [&] {
    const auto heard = heard_.find(broker);
    return !resigned() && members_.is_live(broker, epoch) &&
           (heard == heard_.end() || heard->second <= since);
  };
  const auto listens_at = since + kDyingFor;
  for (int refused = 0; refused < refusals;) {
    const auto due = home_.now() + kBetweenRefusals;
    bool in_time = home_.now() > since;
    while (in_time && !resigned()) in_time = co_await resigned_.wait_until(due);
    if (!silent()) co_return false;
    const bool refuses =
        co_await refuses_connections(*config_.network, home_, members_.find(broker)->advertised);
    refused = refuses ? refused + 1 : 0;
    if (!refuses && home_.now() >= listens_at) co_return false;
  }
  co_return silent();
}

/// As if its session had ended. Should it live all the same, then its next heartbeat, which its
/// watch hurries, takes its lease away, and it registers again.
asio::awaitable<void> Controller::Impl::end_registration(model::BrokerId broker,
                                                         model::BrokerEpoch epoch) {
  const auto turn = co_await writes_.wait_for_turn();
  if (resigned() || !members_.is_live(broker, epoch)) co_return;
  const auto& registration = *members_.find(broker);
  const auto address = registration.advertised.text();
  const auto incarnation = registration.incarnation;
  std::vector<metadata::Operation> operations;
  operations.emplace_back(
      metadata::Check(layout::broker_epoch(broker), static_cast<std::int32_t>(epoch.value())));
  operations.emplace_back(metadata::Remove(layout::broker_live(broker), metadata::kAnyVersion));
  const auto removed = co_await writer_.remove(std::move(operations));
  if (resigned()) co_return;
  const Error why = controller::refusal(removed);
  if (!why || why == make_error_code(MetadataErrc::outcome_unknown))
    taken_for_dead_.emplace(incarnation, false);
  if (why) {
    base::log_warning("controller",
                      "the process of broker {} has ended, its registration not yet: {}", broker,
                      why.message());
  } else {
    base::log_warning("controller",
                      "the process of broker {} has ended: its connection was lost and {} refuses "
                      "new ones; its registration is ended before its session",
                      broker, address);
  }
  members_changed_ = true;
  members_wake_.notify_all();
}

bool Controller::Impl::is_spared(model::BrokerId broker) const {
  if (MQ_MUTANT("mistaken_again")) return false;
  return taken_for_dead_.contains(members_.find(broker)->incarnation);
}

/// The process that was taken for dead has registered again.
void Controller::Impl::note_returned() {
  for (const auto& info : members_.infos()) {
    if (!info.alive || taken_for_dead_.empty()) continue;
    const auto found = taken_for_dead_.find(members_.find(info.id)->incarnation);
    if (found == taken_for_dead_.end() || std::exchange(found->second, true)) continue;
    base::log_warning(
        "controller",
        "broker {} was taken for dead and lives: connections from this broker to {} "
        "are refused, by a firewall? The end of its session is waited for from now on",
        info.id, info.advertised.text());
  }
}

}  // namespace mq::controller
