#include "sim/broker_life.h"

#include "broker/worker.h"

namespace mq::sim {
namespace {

using namespace std::chrono_literals;

using OpenedStore = base::Result<std::unique_ptr<metadata::MetadataStore>>;

asio::awaitable<OpenedStore> open_store(std::shared_ptr<metadata::MemoryStoreState> state,
                                        base::Runtime* runtime, base::Duration latency_max) {
  metadata::MemoryStoreOptions options;
  options.latency_max = latency_max;
  co_return metadata::open_memory_store(std::move(state), *runtime, options);
}

/// Now and then a disk that is busy, or about to fail.
testing::SimDiskTimes draw_disk_times(testing::SimRandom& random) {
  testing::SimDiskTimes times;
  if (!random.chance(0.25)) return times;
  times.work_max = 40ms;
  times.stall_chance = 0.05;
  times.stall_max = 3s;
  return times;
}

}  // namespace

BrokerLife::BrokerLife(BrokerMachine& machine)
    : machine_(machine),
      random_(machine.random.fork()),
      files_(machine.files, machine.random.fork()),
      executor_(machine.simulator, draw_disk_times(random_)) {
  const auto count = random_.between(1, 4);
  for (std::uint64_t i = 0; i < count; ++i)
    workers_.push_back(std::make_unique<testing::SimRuntime>(machine.simulator));
  jump_wall_clock(machine.clock_skew_ms);
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
  const base::Duration latency = random_.chance(0.2) ? base::Duration(500ms) : 3ms;
  parts.open_metadata = [this, latency](const std::string&) {
    return open_store(machine_.metadata, workers_.front().get(), latency);
  };
  parts.on_recovered = [this](const model::PartitionId& id) {
    if (!files_.dead() && !ending_) on_recovered_(id);
  };
  parts.boot_id = fmt::format("boot-{}", machine_.boots);
  return parts;
}

void BrokerLife::start(std::function<void(const model::PartitionId&)> on_recovered) {
  on_recovered_ = std::move(on_recovered);
  machine_.simulator.trace(fmt::format("the broker starts, {} workers", workers_.size()));
  machine_.metadata->on_applied = [this] {
    if (metadata_writes_left_ > 0 && --metadata_writes_left_ == 0) {
      files_.kill();
      die("behind a write to the metadata store");
    }
  };
  // A write that takes long holds up its worker, and with it whatever else runs there.
  const double slow_writes = random_.chance(0.2) ? 0.02 : 0;
  machine_.files.on_write([this, slow_writes] {
    if (slow_writes > 0 && random_.chance(slow_writes))
      machine_.simulator.pass(random_.duration(1ms, 200ms));
  });
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
  require(started.has_value() || files_.dead() || ending_ || machine_.sync_fault_struck() ||
              machine_.metadata_struck() || disk_is_full(),
          "the broker did not start: {}", broker_->refusal().text);
  refused_ = !started.has_value();
}

/// A start may need more than there is; it says so and changes nothing.
bool BrokerLife::disk_is_full() const {
  constexpr std::uint64_t kEnough = std::uint64_t{4} << 20;
  return machine_.files.free_bytes("/disk").value() < kEnough &&
         broker_->refusal().text.find("the disk is full") != std::string::npos;
}

void BrokerLife::die_after(std::uint64_t changes) {
  files_.kill_after(changes, [this] { die("in the middle of a disk operation"); });
}

/// Its files are dead already; now the rest of it is.
void BrokerLife::die(const char* where) {
  machine_.simulator.trace(fmt::format("the broker dies {}", where));
  machine_.cut_off_metadata(true);
  machine_.network.crash("broker", testing::SimNetwork::Crash::reset);
}

void BrokerLife::jump_wall_clock(std::int64_t ms) {
  for (const auto& worker : workers_) worker->jump_wall_clock(ms);
}

void BrokerLife::end(BrokerEnd how) {
  // A world that has failed ends its broker again, maybe while the first stop is still under way.
  if (std::exchange(ending_, true)) return;
  machine_.simulator.trace(how == BrokerEnd::clean_stop ? "the broker is stopped"
                           : how == BrokerEnd::kill     ? "the broker is killed"
                                                        : "the broker's power is cut");
  if (how != BrokerEnd::clean_stop) {
    files_.kill();
    machine_.cut_off_metadata(true);
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
  if (starting_) broker_->give_up_start();
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
  machine_.cut_off_metadata(false);
  machine_.metadata->on_applied = nullptr;
  machine_.files.on_write(nullptr);
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
