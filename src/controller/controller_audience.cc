#include <algorithm>

#include "base/log.h"
#include "base/mutants.h"
#include "controller/controller_impl.h"
#include "controller/refusals.h"

// A controller that reaches the metadata store and no broker is no use to anybody.
namespace mq::controller {
namespace {

constexpr base::Duration kLook = std::chrono::seconds(1);
/// Each broker asks for images every two seconds.
constexpr base::Duration kUnheardFor = std::chrono::seconds(5);
constexpr std::size_t kOthersMin = 2;

}  // namespace

/// Of two brokers that do not hear each other neither is the better controller.
bool Controller::Impl::hears_somebody(base::TimePoint began) const {
  const auto now = home_.now();
  if (now - began < kUnheardFor || MQ_MUTANT("unheard_office_kept")) return true;
  std::size_t others = 0;
  for (const auto& info : members_.infos()) {
    if (!info.alive || info.id == config_.broker) continue;
    const auto heard = heard_.find(info.id);
    if (heard != heard_.end() && now - heard->second < kUnheardFor) return true;
    ++others;
  }
  return others < kOthersMin;
}

/// Brokers that are busy, on a disk that stands still or with thousands of new logs, ask for
/// nothing for a while. Those that can be connected to are not cut off.
asio::awaitable<bool> Controller::Impl::reaches_somebody() {
  if (config_.network == nullptr) co_return false;
  const auto all = members_.infos();
  for (const auto& info : all) {
    if (!info.alive || info.id == config_.broker || resigned()) continue;
    const bool reached = co_await takes_connections(*config_.network, home_, info.advertised);
    if (reached) co_return true;
  }
  co_return false;
}

/// Leaders ask the controller for every change of an ISR, and until it is made what acks=all waits
/// for may wait for a replica that is gone: so the office goes to somebody whom the others reach.
asio::awaitable<void> Controller::Impl::follow_audience() {
  auto began = home_.now();
  auto looked = began;
  while (!resigned()) {
    const auto due = home_.now() + kLook;
    bool in_time = true;
    while (in_time && !resigned()) in_time = co_await resigned_.wait_until(due);
    // Where this process stood still itself, nobody could be heard.
    if (home_.now() - looked > 2 * kLook) began = home_.now();
    looked = home_.now();
    if (resigned() || hears_somebody(began)) continue;
    const bool reached = co_await reaches_somebody();
    looked = home_.now();
    if (reached || resigned() || hears_somebody(began)) continue;
    base::log_warning("controller",
                      "none of the other brokers was heard of for {} s, and the metadata store has "
                      "them as alive: this broker is cut off from them, and gives the office of "
                      "controller up",
                      std::chrono::duration_cast<std::chrono::seconds>(kUnheardFor).count());
    unheard_ = true;
    on_deposed();
  }
}

}  // namespace mq::controller
