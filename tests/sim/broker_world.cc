#include "sim/broker_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "sim/broker_life.h"
#include "sim/broker_trouble.h"
#include "sim/clients.h"
#include "sim/topic_keeper.h"
#include "support/run.h"

namespace mq::sim {
namespace {

using namespace std::chrono_literals;

class World {
 public:
  explicit World(std::uint64_t seed) : machine_(seed) {
    ledger_.range = [this](const model::PartitionId& id) { return range_of(id); };
    ledger_.leaving = [this](const std::string& name) {
      return std::ranges::any_of(topics_.topics(), [&](const SimTopic& topic) {
        return topic.name == name && topic.leaving;
      });
    };
    machine_.simulator.on_step([this] {
      if (life_ && !machine_.failed()) machine_.checked([this] { life_->observe(); });
    });
  }
  void run();
  void report(Report& report);
  /// False when something in it never ended; it must not be destroyed then.
  [[nodiscard]] bool may_go() const noexcept { return may_go_; }

 private:
  void make_clients();
  bool start_broker(bool may_die);
  void end_broker(BrokerEnd how);
  void live(bool final);
  void check_recovered();
  void check_recovered(const model::PartitionId& id);
  void calm_down();
  void check_all();
  [[nodiscard]] bool caught_up();
  void end_clients();
  bool wait_for(const std::function<bool()>& done, base::Duration limit, std::string_view what);
  [[nodiscard]] storage::PartitionLog* log_of(const model::PartitionId& id);
  std::optional<std::pair<std::int64_t, std::int64_t>> range_of(const model::PartitionId& id);

  BrokerMachine machine_;
  SharedLedger ledger_;
  PresentBroker present_;
  TopicKeeper topics_{machine_, present_, ledger_};
  std::vector<std::unique_ptr<SimProducer>> producers_;
  std::vector<std::unique_ptr<SimConsumer>> consumers_;
  std::vector<std::string> nodes_;  // of the clients, weighted for BrokerTrouble
  std::optional<BrokerTrouble> trouble_;
  std::unique_ptr<BrokerLife> life_;
  bool over_ = false;        // all was calm and everything was found
  bool pages_lost_ = false;  // by a power cut since the last check
  bool may_go_ = true;
};

void World::make_clients() {
  std::uint64_t number = 0;
  constexpr Acks kAcks[] = {Acks::all, Acks::leader, Acks::none};
  for (const auto& topic : topics_.topics()) {
    const auto count = machine_.random.between(1, 2);
    for (std::uint64_t i = 0; i < count; ++i) {
      const Acks acks = kAcks[machine_.random.below(machine_.random.chance(0.3) ? 3 : 2)];
      producers_.push_back(
          std::make_unique<SimProducer>(machine_, ledger_, ++number, topic.name, acks));
      nodes_.insert(nodes_.end(), 3, fmt::format("producer-{}", number));
    }
    consumers_.push_back(
        std::make_unique<SimConsumer>(machine_, ledger_, ++number, topic.name, topic.partitions));
    nodes_.push_back(fmt::format("consumer-{}", number));
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

storage::PartitionLog* World::log_of(const model::PartitionId& id) {
  return life_ && life_->serving() ? life_->broker().core().disks->find(id) : nullptr;
}

std::optional<std::pair<std::int64_t, std::int64_t>> World::range_of(const model::PartitionId& id) {
  auto* const log = log_of(id);
  if (log == nullptr) return std::nullopt;
  return std::pair(log->log_start_offset().value(), log->confirmed_end().value());
}

/// When all is recovered.
void World::check_recovered() {
  topics_.check_started();
  for (const auto& topic : topics_.topics()) {
    // Its making may not have been answered, and clients have found it all the same.
    const auto id = topics_.id_of(topic.name);
    if (id.is_zero()) continue;
    for (std::int32_t p = 0; p < topic.partitions; ++p)
      require(log_of({id, p}) != nullptr, "{}: no log after a restart", ledger_.of({id, p}).name());
  }
  pages_lost_ = false;
}

/// Before it is served: what clients know must be there, but for what the end of the life before
/// may take.
void World::check_recovered(const model::PartitionId& id) {
  const auto topic = std::ranges::find_if(
      topics_.topics(), [&](const SimTopic& one) { return topics_.id_of(one.name) == id.topic; });
  if (topic == topics_.topics().end()) return;
  auto& ledger = ledger_.of(id);
  auto* const log = life_->broker().core().disks->find(id);
  require(log != nullptr, "{}: no log after its recovery", ledger.name());
  if (log->failure()) return;  // judged by the summary
  const auto end = log->log_end_offset().value();
  const bool may_lose = topic->memory && pages_lost_;
  if (may_lose) ledger_.doubtful.insert(id);
  if (may_lose && end < ledger.end()) {
    ++ledger_.losses[id];
    ledger.forget_from(end);
  }
  require(end >= ledger.end(), "{}: clients know offsets up to {}, the log came back up to {}",
          ledger.name(), ledger.end(), end);
}

bool World::start_broker(bool may_die) {
  life_ = std::make_unique<BrokerLife>(machine_);
  present_.life = life_.get();
  ++present_.number;
  if (may_die && machine_.random.chance(0.25))
    life_->die_after(machine_.random.between(1, machine_.random.chance(0.3) ? 30 : 1500));
  if (may_die && machine_.random.chance(0.15))
    life_->die_at_metadata_write(machine_.random.between(1, 6));
  life_->start(
      [this](const model::PartitionId& id) { machine_.checked([&] { check_recovered(id); }); });
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
  present_.life = nullptr;
  life_.reset();
}

/// All faults are healed; the broker serves.
void World::calm_down() {
  trouble_->end();
  wait_for([this] { return trouble_->ended(); }, 2min, "the trouble does not end");
  life_->die_at_metadata_write(0);
  machine_.network.heal();
  machine_.files.clear_faults();
  machine_.files.set_capacity(machine_.files.used_bytes() + kDiskBytes);
  machine_.simulator.trace("all is calm");
}

bool World::caught_up() {
  return std::ranges::all_of(consumers_, [this](const auto& consumer) {
    const auto positions = consumer->positions();
    const bool at_ends = std::ranges::all_of(positions, [&](const auto& entry) {
      const auto& [name, position] = entry;
      auto* const log = log_of({topics_.id_of(name.topic), name.partition});
      return log != nullptr && position >= log->confirmed_end().value();
    });
    return consumer->rewound() && !positions.empty() && at_ends;
  });
}

void World::check_all() {
  const auto made = [this] { return present_.broken() || topics_.settled(); };
  if (!wait_for(made, 2min, "topics are not made") || present_.broken()) return;
  for (const auto& producer : producers_) producer->quiesce();
  const auto settled = [this] {
    return std::all_of(producers_.begin(), producers_.end(),
                       [](const auto& producer) { return producer->settled(); });
  };
  if (!wait_for(settled, 3min, "CLI-1: producers have records without a result")) return;
  for (const auto& consumer : consumers_) consumer->read_all_again();
  const auto read = [this] { return caught_up(); };
  // Some read tens of megabytes in small pieces over a slow link.
  if (!wait_for(read, 30min, "consumers do not reach the end of their partitions")) return;
  std::map<std::uint64_t, const SentRecords*> senders;
  for (const auto& producer : producers_) senders[producer->sent().producer()] = &producer->sent();
  for (const auto& consumer : consumers_) {
    const auto id = topics_.id_of(consumer->topic());
    require(consumer->topic_read().value_or(id) == id, "PAR-6: {} is {} and holds records of {}",
            consumer->topic(), id.hex(), consumer->topic_read().value_or(id).hex());
    for (const auto& [partition, found] : consumer->found()) {
      auto& ledger = ledger_.of({id, partition});
      if (auto* const log = log_of({id, partition}))
        ledger.forget_below(log->log_start_offset().value());
      ledger.check_complete(found);
      check_order(ledger.name(), found, senders);
    }
  }
  wait_for([this] { return topics_.tidy(); }, 3min, "MET-2: something of deleted topics is left");
  over_ = true;
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

/// One life up to the moment when it is to end. The final one ends when all was calm and everything
/// was found, if nothing breaks before.
void World::live(bool final) {
  if (!start_broker(!final)) return;
  machine_.checked([this] { check_recovered(); });
  const auto broken = [this] { return present_.broken(); };
  if (!final) {
    wait_for(broken, machine_.random.duration(50ms, 25s), "");
    return;
  }
  calm_down();
  if (!broken()) machine_.checked([this] { check_all(); });
}

void World::run() {
  make_clients();
  topics_.start();
  trouble_.emplace(machine_, present_, topics_, std::move(nodes_));
  trouble_->start();
  const auto lives = machine_.random.between(2, 6);
  for (std::uint64_t i = 0; !machine_.failed(); ++i) {
    live(i >= lives);
    if (over_ || machine_.failed()) break;
    const auto dice = machine_.random.below(10);
    const BrokerEnd how = dice < 3 && !life_->dead() ? BrokerEnd::clean_stop
                          : dice < 6                 ? BrokerEnd::kill
                                                     : BrokerEnd::power_cut;
    pages_lost_ = pages_lost_ || how == BrokerEnd::power_cut || machine_.sync_fault_struck();
    machine_.forget_faults();
    end_broker(how);
    if (!life_ && !machine_.failed()) machine_.simulator.run_for(machine_.random.duration(0ms, 3s));
  }
  trouble_->end();
  topics_.end();
  end_clients();
  machine_.simulator.run_until([this] { return topics_.ended() && trouble_->ended(); }, 2min);
  if (life_) end_broker(machine_.failed() ? BrokerEnd::kill : BrokerEnd::clean_stop);
}

void World::report(Report& report) {
  report.violation = machine_.violation;
  report.trace_hash = machine_.simulator.trace_hash();
  report.steps = machine_.simulator.steps();
  report.lives = present_.number;
  for (const auto& producer : producers_) report.records += producer->sent().delivered();
  report.trace = machine_.simulator.recent_trace();
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
