#include "sim/broker_machine.h"

#include <fmt/format.h>

namespace mq::sim {
namespace {

using namespace std::chrono_literals;

testing::SimLink link_of(testing::SimRandom& random) {
  testing::SimLink link;
  if (random.chance(0.3)) link.delay_max = 5ms;
  if (random.chance(0.3)) link.piece_bytes_max = 300;
  if (random.chance(0.3)) link.window_bytes = 16 << 10;
  return link;
}

}  // namespace

BrokerMachine::BrokerMachine(std::uint64_t seed)
    : simulator(seed),
      random(simulator.random().fork()),
      capture(simulator),
      network(simulator, link_of(random)) {
  files.set_capacity(kDiskBytes);
  metadata->fault = [this](bool) { return draw_metadata_fault(); };
  if (random.chance(0.5)) files.set_cold_share(0.2);
  if (!files.make_directory("/disk") || !files.sync_directory("/")) fail("no data directory");
}

void BrokerMachine::fail(std::string what) {
  if (failed()) return;
  violation = std::move(what);
  simulator.trace("VIOLATION " + violation);
}

void BrokerMachine::plan_sync_fault() {
  testing::Fault fault;
  fault.operation = testing::FileOperation::sync;
  fault.skip = static_cast<int>(random.below(20));
  files.inject(std::move(fault));
  simulator.trace("a sync will fail");
}

void BrokerMachine::forget_faults() {
  files.clear_faults();
  strikes_seen_ = files.faults_struck();
  metadata_struck_ = false;
}

asio::awaitable<void> BrokerMachine::disturb_metadata() {
  constexpr std::uint64_t kShares[] = {10, 40, 100};
  const auto percent = kShares[random.below(std::size(kShares))];
  simulator.trace(fmt::format("{} % of the calls of the metadata store fail", percent));
  set_metadata_faults(percent);
  co_await runtime.sleep_for(random.duration(100ms, 8s));
  set_metadata_faults(0);
  simulator.trace("the metadata store works again");
}

metadata::StoreFault BrokerMachine::draw_metadata_fault() {
  if (metadata_cut_off_) return metadata::StoreFault::unavailable;
  if (metadata_fault_percent_ == 0 || random.below(100) >= metadata_fault_percent_)
    return metadata::StoreFault::none;
  metadata_struck_ = true;
  constexpr metadata::StoreFault kFaults[] = {metadata::StoreFault::unavailable,
                                              metadata::StoreFault::lost_request,
                                              metadata::StoreFault::lost_answer};
  return kFaults[random.below(std::size(kFaults))];
}

asio::awaitable<void> BrokerMachine::guarded(asio::awaitable<void> task) {
  try {
    co_await std::move(task);
  } catch (const std::exception& broken) {
    fail(broken.what());
  }
}

void BrokerMachine::spawn(std::string what, asio::awaitable<void> task) {
  runtime.spawn(std::move(what), guarded(std::move(task)));
}

}  // namespace mq::sim
