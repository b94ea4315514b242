#include "sim/broker_life.h"

#include "broker/worker.h"

namespace mq::sim {
namespace {

using namespace std::chrono_literals;

using OpenedStore = base::Result<std::unique_ptr<metadata::MetadataStore>>;

asio::awaitable<OpenedStore> open_store(std::shared_ptr<metadata::MemoryStoreState> state,
                                        base::Runtime* runtime) {
  metadata::MemoryStoreOptions options;
  options.latency_max = 3ms;
  co_return metadata::open_memory_store(std::move(state), *runtime, options);
}

}  // namespace

BrokerLife::BrokerLife(BrokerMachine& machine)
    : machine_(machine),
      random_(machine.random.fork()),
      files_(machine.files, machine.random.fork()),
      executor_(machine.simulator, {}) {
  const auto count = random_.between(1, 3);
  for (std::uint64_t i = 0; i < count; ++i)
    workers_.push_back(std::make_unique<testing::SimRuntime>(machine.simulator));
  network_ = machine.network.join("broker", *workers_.front());
  broker_ = std::make_unique<broker::Broker>(parts());
}

BrokerLife::~BrokerLife() = default;

broker::BrokerParts BrokerLife::parts() {
  broker::BrokerParts parts;
  parts.config.id = model::BrokerId(1);
  parts.config.metadata = "local";
  parts.config.disks = {"/disk"};
  parts.config.listener.bind = {"0.0.0.0", 9500};
  parts.config.listener.advertised = {"broker", 9500};
  parts.limits = broker::limits_of(parts.config, workers_.size());
  for (const auto& worker : workers_) parts.workers.push_back(worker.get());
  parts.network = network_.get();
  parts.move_stream = [](std::unique_ptr<base::Stream> stream, std::size_t) {
    return base::Result<std::unique_ptr<base::Stream>>(std::move(stream));
  };
  parts.files = &files_;
  parts.disk_executor = &executor_;
  parts.counters = &counters_;
  parts.open_metadata = [this](const std::string&) {
    return open_store(machine_.metadata, workers_.front().get());
  };
  parts.boot_id = fmt::format("boot-{}", machine_.boots);
  return parts;
}

void BrokerLife::start() {
  machine_.simulator.trace("the broker starts");
  starting_ = true;
  machine_.spawn("broker start", run_start());
}

asio::awaitable<void> BrokerLife::run_start() {
  const auto started = co_await broker_->start();
  starting_ = false;
  if (started && !files_.dead() && !ending_) {
    const auto& recovered = broker_->recovery();
    require(recovered.offline.empty(), "REC-1: {} is offline though nothing was damaged",
            recovered.offline.empty() ? "" : recovered.offline.front().text());
    require(recovered.moved_to_unknown.empty(), "REC-9: a known partition went to unknown/");
    serving_ = true;
    machine_.simulator.trace("the broker serves");
  }
  require(started.has_value() || files_.dead() || ending_ || machine_.sync_fault_struck(),
          "the broker did not start: {}", broker_->refusal().text);
  refused_ = !started.has_value();
}

void BrokerLife::die_after(std::uint64_t changes) {
  files_.kill_after(changes, [this] {
    machine_.simulator.trace("the broker dies in the middle of a disk operation");
    machine_.metadata->fault = [](bool) { return metadata::StoreFault::unavailable; };
    machine_.network.crash("broker", testing::SimNetwork::Crash::reset);
  });
}

void BrokerLife::end(BrokerEnd how) {
  // A world that has failed ends its broker again, maybe while the first stop is still under way.
  if (std::exchange(ending_, true)) return;
  machine_.simulator.trace(how == BrokerEnd::clean_stop ? "the broker is stopped"
                           : how == BrokerEnd::kill     ? "the broker is killed"
                                                        : "the broker's power is cut");
  if (how != BrokerEnd::clean_stop) {
    files_.kill();
    machine_.metadata->fault = [](bool) { return metadata::StoreFault::unavailable; };
    const bool silent = how == BrokerEnd::power_cut && random_.chance(0.7);
    machine_.network.crash(
        "broker", silent ? testing::SimNetwork::Crash::silent : testing::SimNetwork::Crash::reset);
    if (how == BrokerEnd::kill) {
      machine_.files.kill();
    } else {
      machine_.files.crash(random_);
      ++machine_.boots;
    }
  }
  machine_.spawn("broker stop", run_stop());
}

asio::awaitable<void> BrokerLife::run_stop() {
  while (starting_) co_await machine_.runtime.sleep_for(10ms);
  const auto stopped = co_await broker_->stop();
  require(stopped.has_value(), "the broker's stop did not end: {}",
          stopped ? "" : stopped.error().message());
  serving_ = false;
  unwound_ = true;
  machine_.network.crash("broker", testing::SimNetwork::Crash::reset);
  machine_.metadata->fault = nullptr;
}

void BrokerLife::observe() {
  if (!serving() || ending_) return;
  for (const auto& worker : broker_->core().workers) {
    for (const auto& [id, partition] : worker->partitions().all()) {
      const auto now = partition->high_watermark().value();
      auto& seen = high_watermarks_[id];
      require(now >= seen, "PAR-1: {}: the high watermark fell from {} to {}", id.text(), seen,
              now);
      require(partition->failure() || now <= partition->log().confirmed_end().value(),
              "PAR-1: {}: high watermark {} above the confirmed end {}", id.text(), now,
              partition->log().confirmed_end());
      seen = now;
    }
  }
}

}  // namespace mq::sim
