#include "sim/broker_world.h"

#include <fmt/format.h>

#include "sim/broker_life.h"
#include "sim/clients.h"
#include "support/run.h"

namespace mq::sim {
namespace {

using namespace std::chrono_literals;

struct Topic {
  std::string name;
  std::int32_t partitions = 1;
  bool memory = false;
  std::map<std::string, std::string> overrides;
};

class World {
 public:
  explicit World(std::uint64_t seed) : machine_(seed) {
    ledger_.range = [this](const TopicPartition& name) { return range_of(name); };
    machine_.simulator.on_step([this] {
      if (life_ && !machine_.failed()) machine_.checked([this] { life_->observe(); });
    });
  }
  void run();
  void report(Report& report);
  /// False when something in it never ended; it must not be destroyed then.
  [[nodiscard]] bool may_go() const noexcept { return may_go_; }

 private:
  void draw_topics();
  void make_clients();
  bool start_broker(bool may_die);
  void end_broker(BrokerEnd how);
  asio::awaitable<void> create_topics();
  asio::awaitable<bool> create_topic(const Topic& topic);
  void check_recovered();
  asio::awaitable<void> trouble();
  void calm_down();
  void check_all();
  [[nodiscard]] bool caught_up();
  [[nodiscard]] bool broken() const { return life_->dead() || life_->disk_failed(); }
  void end_clients();
  bool wait_for(const std::function<bool()>& done, base::Duration limit, std::string_view what);
  storage::PartitionLog* log_of(const std::string& topic, std::int32_t partition);
  std::optional<std::pair<std::int64_t, std::int64_t>> range_of(const TopicPartition& name);

  BrokerMachine machine_;
  SharedLedger ledger_;
  std::vector<Topic> topics_;
  std::vector<std::unique_ptr<SimProducer>> producers_;
  std::vector<std::unique_ptr<SimConsumer>> consumers_;
  std::unique_ptr<BrokerLife> life_;
  bool topics_made_ = false;
  bool troubled_ = true;
  bool trouble_ended_ = true;
  bool pages_lost_ = false;  // by a power cut since the last check
  bool may_go_ = true;
  std::uint64_t lives_ = 0;
};

void World::draw_topics() {
  const auto count = machine_.random.between(1, 3);
  for (std::uint64_t i = 0; i < count; ++i) {
    Topic topic;
    topic.memory = machine_.random.chance(0.4);
    topic.name = fmt::format("{}-{}", topic.memory ? "memory" : "disk", i);
    topic.partitions = static_cast<std::int32_t>(machine_.random.between(1, 3));
    topic.overrides["durability"] = topic.memory ? "memory" : "disk";
    topic.overrides["segment.bytes"] = "1MiB";
    topic.overrides["retention.age"] = "forever";
    if (machine_.random.chance(0.2)) topic.overrides["retention.age"] = "30s";
    topics_.push_back(std::move(topic));
  }
}

void World::make_clients() {
  std::uint64_t number = 0;
  constexpr Acks kAcks[] = {Acks::all, Acks::leader, Acks::none};
  for (const auto& topic : topics_) {
    const auto count = machine_.random.between(1, 2);
    for (std::uint64_t i = 0; i < count; ++i) {
      const Acks acks = kAcks[machine_.random.below(machine_.random.chance(0.3) ? 3 : 2)];
      producers_.push_back(
          std::make_unique<SimProducer>(machine_, ledger_, ++number, topic.name, acks));
    }
    std::vector<TopicPartition> partitions;
    for (std::int32_t p = 0; p < topic.partitions; ++p) partitions.push_back({topic.name, p});
    consumers_.push_back(std::make_unique<SimConsumer>(machine_, ledger_, ++number, partitions));
  }
  for (const auto& producer : producers_) producer->start();
  for (const auto& consumer : consumers_) consumer->start();
}

bool World::wait_for(const std::function<bool()>& done, base::Duration limit,
                     std::string_view what) {
  const auto stop = [&] { return machine_.failed() || done(); };
  if (!machine_.simulator.run_until(stop, limit) && !what.empty())
    machine_.fail(
        fmt::format("{}{}", what, machine_.simulator.stuck() ? " (runs in a circle)" : ""));
  return !machine_.failed() && done();
}

storage::PartitionLog* World::log_of(const std::string& topic, std::int32_t partition) {
  const auto image = life_->broker().core().controller->image();
  const auto found = image->find_topic(topic);
  if (!found) return nullptr;
  return life_->broker().core().disk->find({found->id, partition});
}

std::optional<std::pair<std::int64_t, std::int64_t>> World::range_of(const TopicPartition& name) {
  auto* const log = life_ && life_->serving() ? log_of(name.topic, name.partition) : nullptr;
  if (log == nullptr) return std::nullopt;
  return std::pair(log->log_start_offset().value(), log->confirmed_end().value());
}

/// Straight after a start: what clients know must be there, but for what the end of the life before
/// may take.
void World::check_recovered() {
  for (const auto& topic : topics_) {
    for (std::int32_t p = 0; p < topic.partitions; ++p) {
      auto& ledger = ledger_.of(topic.name, p);
      auto* const log = log_of(topic.name, p);
      require(log != nullptr, "{}: no log after a restart", ledger.name());
      const auto end = log->log_end_offset().value();
      const bool may_lose = topic.memory && pages_lost_;
      if (may_lose) ledger_.doubtful.insert({topic.name, p});
      if (may_lose && end < ledger.end()) {
        ++ledger_.losses[{topic.name, p}];
        ledger.forget_from(end);
      }
      require(end >= ledger.end(), "{}: clients know offsets up to {}, the log came back up to {}",
              ledger.name(), ledger.end(), end);
    }
  }
  pages_lost_ = false;
}

bool World::start_broker(bool may_die) {
  life_ = std::make_unique<BrokerLife>(machine_);
  ++lives_;
  if (may_die && machine_.random.chance(0.25))
    life_->die_after(machine_.random.between(1, machine_.random.chance(0.3) ? 30 : 1500));
  life_->start();
  wait_for([this] { return life_->serving() || life_->dead(); }, 10min,
           "the broker does not start");
  return life_->serving();
}

void World::end_broker(BrokerEnd how) {
  life_->end(how);
  wait_for([this] { return life_->unwound(); }, 10min, "the broker does not stop");
  for (const auto& [name, value] : life_->counters().snapshot()) {
    if (name.starts_with("invariant_violations") && value > 0)
      machine_.fail(fmt::format("the broker counts {} = {}", name, value));
  }
  if (!life_->unwound()) {
    may_go_ = false;
    return;
  }
  life_.reset();
}

/// One try in this life; false when another is needed.
asio::awaitable<bool> World::create_topic(const Topic& topic) {
  protocol::NewTopic wanted;
  wanted.name = topic.name;
  wanted.partitions = topic.partitions;
  wanted.settings = topic.overrides;
  const auto deadline = machine_.runtime.now() + 10s;
  const auto life = lives_;
  const auto made =
      co_await life_->broker().core().controller->create_topic(std::move(wanted), false, deadline);
  if (life != lives_ || !life_ || broken()) co_return false;
  const bool there = made.status.ok() || made.status.error() == protocol::WireError::topic_exists;
  require(there || made.status.error() == protocol::WireError::storage_full ||
              made.status.error() == protocol::WireError::timed_out,
          "{} was not created: {}", topic.name, made.status.text);
  co_return there;
}

asio::awaitable<void> World::create_topics() {
  const auto life = lives_;
  for (const auto& topic : topics_) {
    bool made = false;
    while (!made) {
      if (life != lives_ || !life_ || broken()) co_return;
      made = co_await create_topic(topic);
      co_await machine_.runtime.sleep_for(100ms);
    }
  }
  topics_made_ = true;
}

asio::awaitable<void> World::trouble() {
  trouble_ended_ = false;
  while (troubled_ && !machine_.failed()) {
    co_await machine_.runtime.sleep_for(machine_.random.duration(100ms, 8s));
    if (!troubled_) break;
    const auto dice = machine_.random.below(10);
    if (dice < 4) {
      machine_.simulator.trace("a connection is reset");
      machine_.network.reset_one(machine_.random);
    } else if (dice < 6 && !producers_.empty()) {
      const auto number = machine_.random.between(1, producers_.size() + consumers_.size());
      for (const auto* kind : {"producer", "consumer"})
        machine_.network.cut("broker", fmt::format("{}-{}", kind, number));
      machine_.simulator.trace(fmt::format("client {} is cut off", number));
      co_await machine_.runtime.sleep_for(machine_.random.duration(100ms, 20s));
      machine_.network.heal();
      machine_.simulator.trace("links are healed");
    } else if (dice < 8) {
      machine_.simulator.trace("the disk fills up");
      machine_.files.set_capacity(machine_.files.used_bytes() + machine_.random.below(2 << 20));
      co_await machine_.runtime.sleep_for(machine_.random.duration(100ms, 10s));
      machine_.files.set_capacity(machine_.files.used_bytes() + kDiskBytes);
      machine_.simulator.trace("space comes back");
    } else if (dice == 8) {
      machine_.plan_sync_fault();
    } else {
      const auto by = static_cast<std::int64_t>(machine_.random.below(20'000)) - 10'000;
      machine_.runtime.jump_wall_clock(by);
    }
  }
  trouble_ended_ = true;
}

/// All faults are healed; the broker serves.
void World::calm_down() {
  troubled_ = false;
  wait_for([this] { return trouble_ended_; }, 2min, "the trouble does not end");
  machine_.network.heal();
  machine_.files.clear_faults();
  machine_.files.set_capacity(machine_.files.used_bytes() + kDiskBytes);
  machine_.simulator.trace("all is calm");
}

bool World::caught_up() {
  for (std::size_t i = 0; i < consumers_.size(); ++i) {
    for (const auto& [partition, position] : consumers_[i]->positions()) {
      auto* const log = log_of(partition.topic, partition.partition);
      if (log == nullptr || position < log->confirmed_end().value()) return false;
    }
    if (consumers_[i]->positions().empty()) return false;
  }
  return true;
}

void World::check_all() {
  for (const auto& producer : producers_) producer->quiesce();
  const auto settled = [this] {
    return std::all_of(producers_.begin(), producers_.end(),
                       [](const auto& producer) { return producer->settled(); });
  };
  if (!wait_for(settled, 3min, "CLI-1: producers have records without a result")) return;
  for (const auto& consumer : consumers_) consumer->read_all_again();
  const auto read = [this] {
    return std::all_of(consumers_.begin(), consumers_.end(),
                       [](const auto& consumer) { return consumer->rewound(); }) &&
           caught_up();
  };
  if (!wait_for(read, 5min, "consumers do not reach the end of their partitions")) return;
  std::map<std::uint64_t, const SentRecords*> senders;
  for (const auto& producer : producers_) senders[producer->sent().producer()] = &producer->sent();
  for (const auto& consumer : consumers_) {
    for (const auto& [partition, found] : consumer->found()) {
      auto& ledger = ledger_.of(partition.topic, partition.partition);
      if (auto* const log = log_of(partition.topic, partition.partition))
        ledger.forget_below(log->log_start_offset().value());
      ledger.check_complete(found);
      check_order(ledger.name(), found, senders);
    }
  }
}

void World::end_clients() {
  for (const auto& producer : producers_) producer->stop();
  for (const auto& consumer : consumers_) consumer->stop();
  const auto stopped = [this] {
    return std::all_of(producers_.begin(), producers_.end(),
                       [](const auto& producer) { return producer->stopped(); }) &&
           std::all_of(consumers_.begin(), consumers_.end(),
                       [](const auto& consumer) { return consumer->stopped(); });
  };
  // After a violation the world still has to be left in an orderly way.
  if (!machine_.simulator.run_until(stopped, 10min)) {
    machine_.fail("a client does not stop");
    may_go_ = false;
  }
}

void World::run() {
  draw_topics();
  make_clients();
  machine_.spawn("trouble", trouble());
  const auto lives = machine_.random.between(2, 6);
  for (std::uint64_t i = 0; !machine_.failed(); ++i) {
    const bool final = i >= lives;
    const bool up = start_broker(!final);
    if (up && topics_made_) machine_.checked([this] { check_recovered(); });
    if (up && !topics_made_) machine_.spawn("create topics", create_topics());
    if (up && final) {
      wait_for([this] { return topics_made_ || broken(); }, 1min, "topics are not created");
      if (!broken()) {
        calm_down();
        if (!broken()) machine_.checked([this] { check_all(); });
        if (!broken() || machine_.failed()) break;
      }
    }
    if (up && !final)
      wait_for([this] { return broken(); }, machine_.random.duration(50ms, 25s), "");
    const auto dice = machine_.random.below(10);
    const BrokerEnd how = dice < 3 && !life_->dead() ? BrokerEnd::clean_stop
                          : dice < 6                 ? BrokerEnd::kill
                                                     : BrokerEnd::power_cut;
    pages_lost_ = pages_lost_ || how == BrokerEnd::power_cut || machine_.sync_fault_struck();
    machine_.forget_faults();
    end_broker(how);
    if (!life_ && !machine_.failed()) machine_.simulator.run_for(machine_.random.duration(0ms, 3s));
  }
  troubled_ = false;
  end_clients();
  if (life_) end_broker(machine_.failed() ? BrokerEnd::kill : BrokerEnd::clean_stop);
  machine_.simulator.run_until([this] { return trouble_ended_; }, 2min);
}

void World::report(Report& report) {
  report.violation = machine_.violation;
  report.trace_hash = machine_.simulator.trace_hash();
  report.steps = machine_.simulator.steps();
  report.lives = lives_;
  for (const auto& producer : producers_) report.records += producer->sent().delivered();
  if (!report.ok()) report.trace = machine_.simulator.recent_trace();
}

}  // namespace

Report run_broker_world(std::uint64_t seed) {
  Report report;
  report.world = "broker";
  report.seed = seed;
  auto world = std::make_unique<World>(seed);
  world->run();
  world->report(report);
  if (!world->may_go()) (void)world.release();
  return report;
}

}  // namespace mq::sim
