#include "sim/broker_trouble.h"

#include <fmt/format.h>

#include <algorithm>

namespace mq::sim {
namespace {

using namespace std::chrono_literals;

/// Longer than a producer tries one batch again.
constexpr auto kRetries = 60s;

}  // namespace

void BrokerTrouble::start() {
  ended_ = false;
  machine_.spawn("trouble", run());
}

asio::awaitable<void> BrokerTrouble::run() {
  while (!ending_ && !machine_.failed()) {
    co_await machine_.runtime.sleep_for(machine_.random.duration(100ms, 8s));
    if (ending_) break;
    switch (machine_.random.below(12)) {
      case 0:
      case 1:
      case 2:
        machine_.simulator.trace("a connection is reset");
        machine_.network.reset_one(machine_.random);
        break;
      case 3:
      case 4:
        co_await cut_a_client();
        break;
      case 5:
      case 6:
        co_await fill_the_disk();
        break;
      case 7:
        machine_.plan_sync_fault();
        break;
      case 8:
        jump_the_clock();
        break;
      case 9:
        co_await machine_.disturb_metadata();
        break;
      default:
        if (!replaces_topics_) break;
        topics_.replace_one();
        if (present_.life && machine_.random.chance(0.3))
          present_.life->die_at_metadata_write(machine_.random.between(1, 6));
    }
  }
  ended_ = true;
}

asio::awaitable<void> BrokerTrouble::cut_a_client() {
  const auto& client = clients_[machine_.random.below(clients_.size())];
  machine_.network.cut("broker", client);
  machine_.simulator.trace(fmt::format("{} is cut off", client));
  // Often just so long that it gives up waiting and what it had sent arrives all the same.
  const bool short_cut = machine_.random.chance(0.5);
  co_await machine_.runtime.sleep_for(short_cut ? machine_.random.duration(3s, 8s)
                                                : machine_.random.duration(100ms, 20s));
  machine_.network.heal();
  machine_.simulator.trace("links are healed");
}

asio::awaitable<void> BrokerTrouble::fill_the_disk() {
  machine_.simulator.trace("the disk fills up");
  machine_.files.set_capacity(machine_.files.used_bytes() + machine_.random.below(2 << 20));
  co_await machine_.runtime.sleep_for(machine_.random.duration(100ms, 10s));
  machine_.files.set_capacity(machine_.files.used_bytes() + kDiskBytes);
  machine_.simulator.trace("space comes back");
}

/// By seconds, an hour or a day: as a clock that is set, or as one that was wrong from the start.
void BrokerTrouble::jump_the_clock() {
  constexpr std::int64_t kNearlyADayMs = 80'000'000;
  constexpr std::int64_t kSpansMs[] = {10'000, 10'000, 3'600'000, 86'400'000};
  const auto span = kSpansMs[machine_.random.below(std::size(kSpansMs))];
  const auto by =
      static_cast<std::int64_t>(machine_.random.below(static_cast<std::uint64_t>(2 * span))) - span;
  machine_.simulator.trace(fmt::format("the broker's clock jumps by {} ms", by));
  machine_.clock_skew_ms += by;
  machine_.lowest_skew_ms = std::min(machine_.lowest_skew_ms, machine_.clock_skew_ms);
  if (machine_.clock_skew_ms - machine_.lowest_skew_ms > kNearlyADayMs)
    machine_.producers_forgotten = true;
  // One jump is no five minutes (IDM-6), several within a batch's retries may
  // pass for them.
  constexpr std::size_t kJumps = 3;
  if (by > 0) jumps_.push_back(machine_.runtime.now());
  if (jumps_.size() > kJumps) jumps_.pop_front();
  if (jumps_.size() == kJumps && machine_.runtime.now() - jumps_.front() < kRetries)
    machine_.retries_forgotten = machine_.producers_forgotten;
  if (present_.life) present_.life->jump_wall_clock(by);
}

}  // namespace mq::sim
