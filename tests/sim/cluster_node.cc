#include "sim/cluster_node.h"

#include <fmt/format.h>

#include "base/run_on.h"

namespace mq::sim {
namespace {

using namespace std::chrono_literals;

std::unique_ptr<testing::SimFileSystem> empty_disk() {
  auto disk = std::make_unique<testing::SimFileSystem>();
  disk->set_capacity(8 * kDiskBytes);  // damaged logs are kept beside their successors
  require(disk->make_directory("/disk") && disk->sync_directory("/"), "no data directory");
  return disk;
}

}  // namespace

/// One process.
struct ClusterNode::Life {
  explicit Life(ClusterNode& node)
      : files(*node.disk_, node.random_.fork()),
        executor(node.world_.simulator, testing::SimDiskTimes(), &node.gate_) {}

  testing::CrashableFileSystem files;
  std::vector<std::unique_ptr<testing::SimRuntime>> workers;
  testing::SimDiskExecutor executor;  // what it still does when it goes may post to workers
  base::Counters counters;
  std::unique_ptr<base::Network> network;
  metadata::MetadataStore* store = nullptr;  // the broker's
  std::unique_ptr<broker::Broker> broker;
  bool starting = true;
  bool serving = false;
  bool refused = false;
  bool ending = false;
  bool session_forgotten = false;
  std::int64_t clock_ahead_ms = 0;
};

ClusterNode::ClusterNode(BrokerMachine& world, std::int32_t id, const replication::IsrLimits& isr)
    : world_(world),
      id_(id),
      name_(fmt::format("broker-{}", id)),
      random_(world.random.fork()),
      isr_(isr),
      disk_(empty_disk()) {}

ClusterNode::~ClusterNode() = default;

bool ClusterNode::serving() const noexcept {
  return life_ && life_->serving && !life_->ending && !life_->files.dead();
}

bool ClusterNode::broken() const noexcept {
  return life_ && (life_->refused || life_->files.dead());
}

broker::Broker* ClusterNode::broker() const noexcept {
  return life_ && !life_->ending && !life_->files.dead() ? life_->broker.get() : nullptr;
}

broker::Broker* ClusterNode::process() const noexcept {
  return life_ && !life_->files.dead() ? life_->broker.get() : nullptr;
}

metadata::ImagePtr ClusterNode::image() const {
  const auto* const alive = broker();
  return alive && alive->core().membership ? alive->core().image() : nullptr;
}

controller::Controller* ClusterNode::controller() const {
  const auto* const alive = broker();
  return alive && alive->core().membership ? alive->core().membership->controller() : nullptr;
}

broker::BrokerParts ClusterNode::parts(Life& life) {
  broker::BrokerParts parts;
  parts.config.id = model::BrokerId(id_);
  parts.config.metadata = "zookeeper://simulated";
  parts.config.zookeeper.servers = {{"simulated", 2181}};
  parts.config.disks = {"/disk"};
  if (world_.racks) parts.config.rack = rack_name(static_cast<std::uint64_t>(id_));
  parts.config.listener.bind = {"0.0.0.0", 9500};
  parts.config.listener.advertised = {name_, 9500};
  parts.limits = broker::limits_of(parts.config, life.workers.size());
  parts.limits.isr = isr_;
  parts.limits.drain_timeout = 30s;  // some stores and disks here take long
  for (const auto& worker : life.workers) parts.workers.push_back(worker.get());
  parts.network = life.network.get();
  parts.move_stream = [](std::unique_ptr<base::Stream> stream, std::size_t) {
    return base::Result<std::unique_ptr<base::Stream>>(std::move(stream));
  };
  parts.files = &life.files;
  parts.disk_executor = &life.executor;
  parts.counters = &life.counters;
  parts.open_metadata = [this, &life](const std::string&) { return open_store(life); };
  parts.boot_id = fmt::format("boot-{}", boots_);
  return parts;
}

asio::awaitable<ClusterNode::OpenedStore> ClusterNode::open_store(Life& life) {
  metadata::MemoryStoreOptions options;
  options.latency_max = 3ms;
  options.single_process = false;
  options.session_timeout = kSessionTimeout;
  auto store = metadata::open_memory_store(world_.metadata, *life.workers.front(), options);
  life.store = store.get();
  co_return OpenedStore(std::move(store));
}

void ClusterNode::start() {
  ++lives_;
  life_ = std::make_unique<Life>(*this);
  const auto workers = random_.between(1, 2);
  for (std::uint64_t i = 0; i < workers; ++i)
    life_->workers.push_back(std::make_unique<testing::SimRuntime>(world_.simulator, gate_));
  life_->network = world_.network.join(name_, *life_->workers.front());
  life_->broker = std::make_unique<broker::Broker>(parts(*life_));
  world_.simulator.trace(fmt::format("{} starts", name_));
  world_.spawn("broker start", run_start(*life_));
}

void ClusterNode::set_clock_ahead(std::int64_t ms) {
  if (!serving()) return;
  const auto& clock = life_->broker->core().clock;
  if (!clock.ahead_ms(*life_->workers.front())) return;
  world_.simulator.trace(fmt::format("the clock of {} is {} ms ahead", name_, ms));
  const auto jump = ms - std::exchange(life_->clock_ahead_ms, ms);
  for (const auto& worker : life_->workers) worker->jump_wall_clock(jump);
}

void ClusterNode::replace_disk(std::unique_ptr<testing::SimFileSystem> disk) {
  require(down(), "the disk of {} is in use", name_);
  // An older copy may hold topics that have been deleted since.
  older_copy_ = disk != nullptr;
  ++disk_losses_;
  disk_ = disk ? std::move(disk) : empty_disk();
  ++boots_;
}

asio::awaitable<void> ClusterNode::run_start(Life& life) {
  const auto started = co_await base::run_on(*life.workers.front(), life.broker->start());
  life.starting = false;
  life.refused = !started.has_value();
  if (started && !life.files.dead() && !life.ending) {
    const auto& recovered = life.broker->recovery();
    require(recovered.offline.empty() || damaged_,
            "REC-1: {} is offline though nothing was damaged",
            recovered.offline.empty() ? "" : recovered.offline.front().text());
    require(recovered.moved_to_unknown.empty() || older_copy_,
            "REC-9: a known partition of {} went to unknown/", name_);
    life.serving = true;
    world_.simulator.trace(fmt::format("{} serves", name_));
  }
  const bool explained =
      started || life.files.dead() || life.ending || world_.metadata_struck() || store_was_lost_;
  require(explained, "{} did not start: {}", name_, life.broker->refusal().text);
}

void ClusterNode::die_after(std::uint64_t changes) {
  Life* const life = life_.get();
  life->files.kill_after(changes,
                         [this, life] { die(*life, "in the middle of a disk operation"); });
}

/// Its files are dead already; now the rest of it is.
void ClusterNode::die(Life& life, const char* where) {
  world_.simulator.trace(fmt::format("{} dies {}", name_, where));
  forget_session(life);
  world_.network.crash(name_, testing::SimNetwork::Crash::reset);
}

/// Nothing it does to the store has an effect any more, and some time later the store notices.
void ClusterNode::forget_session(Life& life) {
  if (std::exchange(life.session_forgotten, true) || life.store == nullptr) return;
  const auto session = life.store->session();
  metadata::cut_off(*world_.metadata, session);
  world_.spawn("session of a dead process", expire_later(session));
}

asio::awaitable<void> ClusterNode::expire_later(std::uint64_t session) {
  co_await world_.runtime.sleep_for(kSessionTimeout + random_.duration(0ms, 2s));
  metadata::expire_session(*world_.metadata, session);
}

void ClusterNode::cut_from_store() {
  if (!broker() || life_->store == nullptr) return;
  store_was_lost_ = true;
  metadata::cut_off(*world_.metadata, life_->store->session());
}

void ClusterNode::rejoin_store() {
  if (broker() && life_->store != nullptr)
    metadata::reconnect(*world_.metadata, life_->store->session());
}

asio::awaitable<void> ClusterNode::lose_the_store(base::Duration span) {
  if (!life_ || life_->ending || life_->store == nullptr || life_->files.dead()) co_return;
  const auto session = life_->store->session();
  const auto number = lives_;
  store_was_lost_ = true;
  world_.simulator.trace(fmt::format("{} loses the metadata store", name_));
  metadata::cut_off(*world_.metadata, session);
  const auto expiry = kSessionTimeout + random_.duration(0ms, 1s);
  co_await world_.runtime.sleep_for(std::min<base::Duration>(span, expiry));
  if (span > expiry) {
    metadata::expire_session(*world_.metadata, session);
    co_await world_.runtime.sleep_for(span - expiry);
  }
  // A process that died meanwhile stays cut off.
  const bool same = life_ && lives_ == number && !life_->session_forgotten;
  if (!same) co_return;
  metadata::reconnect(*world_.metadata, session);
  world_.simulator.trace(fmt::format("{} finds the metadata store again", name_));
}

asio::awaitable<void> ClusterNode::pause(base::Duration span) {
  if (!serving() || gate_.paused()) co_return;
  const auto session = life_->store->session();
  const auto number = lives_;
  const auto expiry = kSessionTimeout + random_.duration(0ms, 1s);
  world_.simulator.trace(fmt::format("{} stands still", name_));
  gate_.pause();
  co_await world_.runtime.sleep_for(std::min<base::Duration>(span, expiry));
  const auto same = [&] { return life_ && lives_ == number && !life_->session_forgotten; };
  if (span > expiry && same()) {
    store_was_lost_ = true;
    metadata::cut_off(*world_.metadata, session);
    metadata::expire_session(*world_.metadata, session);
    co_await world_.runtime.sleep_for(span - expiry);
  }
  if (!same()) co_return;  // its end has let it go on
  world_.simulator.trace(fmt::format("{} goes on", name_));
  gate_.resume();
  if (span <= expiry) co_return;
  co_await world_.runtime.sleep_for(random_.duration(0ms, 20ms));
  if (same()) metadata::reconnect(*world_.metadata, session);
}

void ClusterNode::stall_the_disk(base::Duration span) {
  if (!serving()) return;
  world_.simulator.trace(fmt::format("the disk of {} stalls", name_));
  life_->executor.stall(span);
}

void ClusterNode::end(BrokerEnd how) {
  if (down()) return;
  Life& life = *life_;
  if (std::exchange(life.ending, true)) return;
  world_.simulator.trace(fmt::format("{} {}", name_,
                                     how == BrokerEnd::clean_stop ? "is stopped"
                                     : how == BrokerEnd::kill     ? "is killed"
                                                                  : "loses its power"));
  if (gate_.paused()) gate_.resume();
  if (how != BrokerEnd::clean_stop) {
    life.files.kill();
    forget_session(life);
    const bool silent = how == BrokerEnd::power_cut && random_.chance(0.7);
    world_.network.crash(
        name_, silent ? testing::SimNetwork::Crash::silent : testing::SimNetwork::Crash::reset);
    if (how == BrokerEnd::kill) {
      disk_->kill();
    } else {
      disk_->crash(random_);
      ++disk_losses_;
      ++boots_;
    }
  }
  if (life.starting) life.broker->give_up_start();
  world_.spawn("broker stop", run_stop(life));
}

asio::awaitable<void> ClusterNode::run_stop(Life& life) {
  stuck_ = true;
  while (life.starting) co_await world_.runtime.sleep_for(10ms);
  const auto stopped = co_await base::run_on(*life.workers.front(), life.broker->stop());
  require(stopped.has_value(), "the stop of {} did not end: {}", name_,
          stopped ? "" : stopped.error().message());
  for (const auto& [name, value] : life.counters.snapshot())
    require((!name.starts_with("invariant_violations") &&
             (name != "records_truncated_below_high_watermark_total" || world_.records_given_up)) ||
                value == 0,
            "{} counts {} = {}", name_, name, value);
  // One that died by itself may have been told to stop in good order.
  forget_session(life);
  world_.network.crash(name_, testing::SimNetwork::Crash::reset);
  // What was posted and refers to nothing any more runs first.
  co_await world_.runtime.sleep_for(1ms);
  life_.reset();
  store_was_lost_ = false;
  stuck_ = false;
}

ClusterNode* leading_node(const Nodes& nodes) {
  ClusterNode* last = nullptr;
  for (const auto& node : nodes) {
    const auto* const controller = node->controller();
    if (controller &&
        (!last || controller->controller_epoch() > last->controller()->controller_epoch()))
      last = node.get();
  }
  return last;
}

}  // namespace mq::sim
