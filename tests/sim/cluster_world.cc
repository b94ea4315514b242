#include "sim/cluster_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "broker/change_topic.h"
#include "sim/bit_flips.h"
#include "sim/clients.h"
#include "sim/cluster_audit.h"
#include "sim/cluster_node.h"
#include "sim/cluster_trouble.h"
#include "sim/drills.h"
#include "sim/replica_trouble.h"
#include "support/run.h"

namespace mq::sim {
namespace {

using namespace std::chrono_literals;
using protocol::WireError;

struct ClusterTopic {
  std::string name;
  std::int32_t partitions = 1;
  base::Uuid id;  ///< zero: none that we know of
  std::int32_t replicas = 1;
  model::Durability durability = model::Durability::disk;
  bool unclean = false;  ///< it would rather lose records than wait for a leader
};

/// Short ones for the most part, so that members leave ISRs often.
replication::IsrLimits draw_isr_limits(testing::SimRandom& random) {
  constexpr base::Duration kTimes[] = {1s, 1s, 2s, 2s, 4s, 10s};
  constexpr std::int64_t kRecords[] = {50, 2000, 100'000};
  replication::IsrLimits limits;
  limits.lag_time = kTimes[random.below(std::size(kTimes))];
  limits.lag_records = kRecords[random.below(std::size(kRecords))];
  return limits;
}

/// Any number: another generator than those before.
constexpr std::uint64_t kLatest = 0x51d1'e7ab'9c3f'0625;

class World {
 public:
  World(std::uint64_t seed, bool replicated);
  void run();
  void report(Report& report);
  /// False when something in it never ended; it must not be destroyed then.
  [[nodiscard]] bool may_go() const noexcept { return may_go_; }

 private:
  // What runs beside the clients.
  asio::awaitable<void> keep_alive(ClusterNode& node);
  asio::awaitable<void> beside(asio::awaitable<void> task);
  asio::awaitable<void> change_topics();
  asio::awaitable<void> make(ClusterTopic& topic);
  asio::awaitable<void> remove(ClusterTopic& topic);
  void check_refusal(const ClusterTopic& topic, const protocol::Status& status);
  BrokerEnd draw_end(ClusterNode& node);
  [[nodiscard]] bool trouble_is_over() const { return calm_ || ending_ || machine_.failed(); }

  void start_clients();
  void add_clients(const ClusterTopic& topic, Acks acks);
  void calm_down();
  void check_all();
  void end_all();
  void check_found(const SimConsumer& consumer);
  [[nodiscard]] bool caught_up();
  [[nodiscard]] bool all_serve() const;
  [[nodiscard]] ClusterNode* some_controller();
  [[nodiscard]] std::string newest_problem() const;
  [[nodiscard]] base::Uuid id_of(const std::string& name);
  [[nodiscard]] storage::PartitionLog* log_of(const model::PartitionId& id);
  using Range = std::pair<std::int64_t, std::int64_t>;
  [[nodiscard]] std::optional<Range> range_of(const model::PartitionId& id);
  [[nodiscard]] bool read_to_the_end(const model::PartitionId& id, std::int64_t position);
  [[nodiscard]] bool settle_producers();
  void run_drill();
  void replace_a_log();
  void compare_replicas();
  void heal_replicas();
  void wait_for_task(std::string_view what, asio::awaitable<void> task);
  bool wait_for(const std::function<bool()>& done, base::Duration limit, std::string_view what);

  BrokerMachine machine_;
  /// Of what came to this world later: what was there before goes on as it did.
  testing::SimRandom extras_;
  testing::SimRandom latest_;  ///< of what came later still
  SharedLedger ledger_;
  Nodes nodes_;
  std::optional<ClusterAudit> audit_;
  bool replicated_;  // three brokers, and topics of which each has a copy
  /// Of what is in memory only the power of one alone may go at a time.
  const bool synced_ = machine_.random.chance(0.7);
  /// One of the topics has unclean_election.
  const bool unclean_ = replicated_ && extras_.chance(0.3);
  const bool more_ = replicated_ && extras_.chance(0.4);
  const bool drilled_ = replicated_ && extras_.chance(0.5);
  const replication::IsrLimits isr_ =
      replicated_ ? draw_isr_limits(machine_.random) : replication::IsrLimits();
  ClusterTrouble trouble_{machine_, nodes_, [this] { return trouble_is_over(); }, !replicated_};
  std::optional<BitFlips> flips_;
  std::optional<ReplicaTrouble> replica_trouble_;
  std::optional<Drills> drills_;
  std::vector<ClusterTopic> topics_;   // with clients, made once
  std::vector<ClusterTopic> passing_;  // without, made and deleted
  std::set<base::Uuid> deleted_;
  std::vector<std::unique_ptr<SimProducer>> producers_;
  std::vector<std::unique_ptr<SimConsumer>> consumers_;
  std::size_t tasks_ = 0;  // of the world's own
  bool calm_ = false;      // no more trouble
  bool ending_ = false;
  bool may_go_ = true;
};

World::World(std::uint64_t seed, bool replicated)
    : machine_(seed), extras_(~seed), latest_(seed ^ kLatest), replicated_(replicated) {
  const auto count = replicated ? 3 : machine_.random.between(1, 3);
  machine_.bootstrap.clear();
  machine_.racks = replicated && extras_.chance(0.5);
  for (std::uint64_t i = 1; i <= count; ++i) {
    nodes_.push_back(std::make_unique<ClusterNode>(machine_, static_cast<std::int32_t>(i), isr_));
    machine_.bootstrap.push_back(nodes_.back()->name() + ":9500");
  }
  audit_.emplace(machine_, nodes_);
  if (replicated) {
    const auto chosen = [this](const base::Uuid& topic) {
      return std::ranges::count(topics_, topic, &ClusterTopic::id) > 0;
    };
    if (extras_.chance(0.4))
      flips_.emplace(machine_, extras_.fork(), audit_->replicas(), chosen, synced_);
    machine_.bits_change = flips_.has_value();
    replica_trouble_.emplace(
        machine_, nodes_, audit_->replicas(), [this] { return trouble_is_over(); }, synced_,
        flips_ ? &*flips_ : nullptr);
  }
  ledger_.range = [this](const model::PartitionId& id) { return range_of(id); };
  ledger_.leaving = [](const std::string&) { return false; };
  auto& losses = audit_->replicas().losses();
  losses.on_loss([this](const model::PartitionId& id, model::Offset from) {
    ledger_.of(id).forget_from(from.value());
    ledger_.doubtful.insert(id);
  });
  ledger_.may_be_lost = [&losses](const model::PartitionId& id, std::int64_t offset,
                                  base::TimePoint sent) {
    return losses.may_be_lost(id, offset, sent);
  };
  // No answer lies anywhere for longer.
  ledger_.only_damaged = [this](const model::PartitionId& id) {
    return audit_->replicas().had_one_holder(id, machine_.runtime.now() - 20s);
  };
  machine_.simulator.on_step([this] {
    if (!machine_.failed()) machine_.checked([this] { audit_->observe(); });
  });
}

bool World::wait_for(const std::function<bool()>& done, base::Duration limit,
                     std::string_view what) {
  const auto stop = [&] { return machine_.failed() || done(); };
  if (!machine_.simulator.run_until(stop, limit) && !what.empty())
    machine_.fail(fmt::format("{}{}{}", what, newest_problem(),
                              machine_.simulator.stuck() ? " (runs in a circle)" : ""));
  return !machine_.failed() && done();
}

std::string World::newest_problem() const {
  std::string text;
  for (const auto& node : nodes_) {
    const auto image = node->image();
    text += fmt::format("; {}: {}, image {}", node->name(),
                        node->down()      ? "down"
                        : node->serving() ? "serves"
                        : node->broken()  ? "broken"
                                          : "starts or stops",
                        image ? image->version() : 0);
  }
  return text;
}

/// Any of them.
ClusterNode* World::some_controller() {
  std::vector<ClusterNode*> found;
  for (const auto& node : nodes_) {
    if (node->controller()) found.push_back(node.get());
  }
  return found.empty() ? nullptr : found[machine_.random.below(found.size())];
}

base::Uuid World::id_of(const std::string& name) {
  const auto* const node = leading_node(nodes_);
  const auto topic = node && node->image() ? node->image()->find_topic(name) : nullptr;
  return topic ? topic->id : base::Uuid();
}

/// Where it is kept: nobody else has one of its directories.
storage::PartitionLog* World::log_of(const model::PartitionId& id) {
  for (const auto& node : nodes_) {
    if (!node->serving()) continue;
    if (auto* const log = node->broker()->core().disks->find(id)) return log;
  }
  return nullptr;
}

/// [start, end) of what a reader may be given: of a partition with copies all that was ever shown.
std::optional<World::Range> World::range_of(const model::PartitionId& id) {
  if (const auto shown = audit_->replicas().shown_end(id)) {
    const auto* const leader = audit_->replicas().leader_of(id);
    if (leader == nullptr) return std::nullopt;
    return std::pair(leader->log_start_offset().value(), shown->value());
  }
  auto* const log = log_of(id);
  if (log == nullptr || replicated_) return std::nullopt;
  return std::pair(log->log_start_offset().value(), log->confirmed_end().value());
}

bool World::read_to_the_end(const model::PartitionId& id, std::int64_t position) {
  if (!replicated_) {
    auto* const log = log_of(id);
    return log != nullptr && position >= log->confirmed_end().value();
  }
  const auto* const leader = audit_->replicas().leader_of(id);
  return leader != nullptr && leader->high_watermark() == leader->log_end_offset() &&
         position >= leader->high_watermark().value();
}

BrokerEnd World::draw_end(ClusterNode& node) {
  if (replica_trouble_) return replica_trouble_->draw_end(node);
  const auto dice = machine_.random.below(10);
  if (dice < 3 && !node.broken()) return BrokerEnd::clean_stop;
  return dice < 7 ? BrokerEnd::kill : BrokerEnd::power_cut;
}

/// One process after the other, with a while between them; the last one stays.
asio::awaitable<void> World::keep_alive(ClusterNode& node) {
  ++tasks_;
  while (!ending_ && !machine_.failed()) {
    node.start();
    if (!calm_ && machine_.random.chance(0.15)) node.die_after(machine_.random.between(1, 1500));
    const auto until = machine_.runtime.now() + machine_.random.duration(100ms, 40s);
    const auto goes_on = [&] { return calm_ || machine_.runtime.now() < until; };
    while (!ending_ && !machine_.failed() && !node.broken() && !node.down() && goes_on())
      co_await machine_.runtime.sleep_for(20ms);
    if (ending_ || machine_.failed()) break;
    node.end(draw_end(node));
    while (!node.down()) co_await machine_.runtime.sleep_for(10ms);
    if (replica_trouble_) replica_trouble_->spoil_disk(node);
    const auto pause = calm_ ? base::Duration() : machine_.random.duration(0ms, 15s);
    const auto begin = machine_.runtime.now() + pause;
    const auto waits = [&] {
      const auto now = machine_.runtime.now();
      return now < node.rests_until() || (!calm_ && now < begin);
    };
    while (!ending_ && waits()) co_await machine_.runtime.sleep_for(20ms);
  }
  if (!node.down()) node.end(machine_.failed() ? BrokerEnd::kill : BrokerEnd::clean_stop);
  while (!node.down()) co_await machine_.runtime.sleep_for(10ms);
  --tasks_;
}

asio::awaitable<void> World::beside(asio::awaitable<void> task) {
  ++tasks_;
  co_await std::move(task);
  --tasks_;
}

asio::awaitable<void> World::change_topics() {
  ++tasks_;
  while (!ending_ && !machine_.failed()) {
    for (auto& topic : topics_) {
      if (topic.id.is_zero()) co_await make(topic);
    }
    auto& topic = passing_[machine_.random.below(passing_.size())];
    if (calm_) {
      // Nothing more is begun.
    } else if (topic.id.is_zero()) {
      co_await make(topic);
    } else {
      co_await remove(topic);
    }
    co_await machine_.runtime.sleep_for(machine_.random.duration(50ms, 3s));
  }
  --tasks_;
}

/// What may go wrong with a change that every broker could make.
void World::check_refusal(const ClusterTopic& topic, const protocol::Status& status) {
  machine_.simulator.trace(fmt::format("{} is not changed: {}", topic.name, status.text));
  constexpr WireError kExplained[] = {
      WireError::metadata_unavailable, WireError::metadata_outcome_unknown,
      WireError::not_controller,       WireError::timed_out,
      WireError::shutting_down,        WireError::partition_recovering,
      WireError::storage_full,         WireError::storage_failed};
  // The controller may not have heard yet that they are back.
  const bool others_away = replicated_ && status.error() == WireError::invalid_replicas;
  require(others_away || std::ranges::find(kExplained, status.error()) != std::end(kExplained),
          "{} was not changed: {}", topic.name, status.text);
}

asio::awaitable<void> World::make(ClusterTopic& topic) {
  auto* const node = some_controller();
  if (!node) co_return;
  protocol::NewTopic wanted;
  wanted.name = topic.name;
  wanted.partitions = topic.partitions;
  wanted.settings["segment.bytes"] = flips_ || more_ ? "64KiB" : "1MiB";
  if (more_) wanted.settings["retention.age"] = "10m";
  wanted.replicas = topic.replicas;
  if (replicated_) {
    wanted.min_isr = 2;
    wanted.settings["durability"] = topic.durability == model::Durability::disk ? "disk" : "memory";
    if (topic.unclean) wanted.settings["unclean_election"] = "true";
  }
  const auto deadline = machine_.runtime.now() + 10s;
  auto create = [&](controller::Controller& controller) {
    return controller.create_topic(wanted, false, deadline);
  };
  const auto made =
      co_await broker::change_at_controller(node->broker()->core(), topic.name, create);
  if (!made.status.ok() && made.status.error() != WireError::topic_exists)
    co_return check_refusal(topic, made.status);
  // One that was deposed and has not heard of it may know of what was deleted since.
  if (!made.status.ok() && node != leading_node(nodes_)) co_return;
  const auto id = made.status.ok() ? made.id : id_of(topic.name);
  if (id.is_zero()) co_return;
  require(!deleted_.contains(id), "C5: {} has its old uuid {} again{}", topic.name, id.hex(),
          made.status.ok() ? "" : ": " + made.status.text);
  topic.id = id;
  machine_.simulator.trace(fmt::format("{} is {}", topic.name, topic.id.hex()));
}

asio::awaitable<void> World::remove(ClusterTopic& topic) {
  auto* const node = some_controller();
  if (!node) co_return;
  const auto deadline = machine_.runtime.now() + 10s;
  auto remove_topic = [&](controller::Controller& controller) {
    return controller.delete_topic(topic.name, deadline);
  };
  const auto removed =
      co_await broker::change_at_controller(node->broker()->core(), topic.name, remove_topic);
  // An earlier try may have done it.
  if (!removed.status.ok() && removed.status.error() != WireError::unknown_topic)
    co_return check_refusal(topic, removed.status);
  machine_.simulator.trace(fmt::format("{} is gone, which was {}{}", topic.name, topic.id.hex(),
                                       removed.status.ok() ? "" : ": " + removed.status.text));
  deleted_.insert(topic.id);
  topic.id = {};
}

void World::start_clients() {
  const auto topics = machine_.random.between(1, 2);
  for (std::uint64_t i = 0; i < topics; ++i) {
    auto& topic = topics_.emplace_back();
    topic.name = fmt::format("disk-{}", i);
    topic.partitions = static_cast<std::int32_t>(machine_.random.between(1, 5));
    Acks acks = machine_.random.chance(0.7) ? Acks::all : Acks::leader;
    if (replicated_) {
      topic.replicas = 3;
      topic.durability = synced_ ? model::Durability::disk : model::Durability::memory;
      acks = Acks::all;
    }
    add_clients(topic, acks);
  }
  if (unclean_) {
    auto& topic = topics_.emplace_back();
    topic.name = "unclean";
    topic.partitions = 2;
    topic.replicas = 3;
    topic.durability = topics_.front().durability;
    topic.unclean = true;
    add_clients(topic, Acks::all);
  }
  for (int i = 0; i < 2; ++i)
    passing_.push_back({fmt::format("passing-{}", i), 2, {}, replicated_ ? 2 : 1});
  for (const auto& producer : producers_) producer->start();
  for (const auto& consumer : consumers_) consumer->start();
}

void World::add_clients(const ClusterTopic& topic, Acks acks) {
  const auto number = producers_.size() + consumers_.size() + 1;
  producers_.push_back(std::make_unique<SimProducer>(machine_, ledger_, number, topic.name, acks));
  consumers_.push_back(
      std::make_unique<SimConsumer>(machine_, ledger_, number + 1, topic.name, topic.partitions));
}

bool World::all_serve() const {
  return std::ranges::all_of(nodes_, [](const auto& node) { return node->serving(); });
}

/// All faults are healed; every broker serves, and all believe the same.
void World::calm_down() {
  calm_ = true;
  machine_.simulator.trace("all is calm");
  wait_for([this] { return tasks_ <= nodes_.size() + 1; }, 2min, "the trouble does not end");
  machine_.network.heal();
  machine_.set_metadata_faults(0);
  if (!wait_for([this] { return all_serve(); }, 5min, "not every broker serves")) return;
  const auto made = [this] {
    return std::ranges::none_of(topics_, [](const auto& topic) { return topic.id.is_zero(); });
  };
  if (!wait_for(made, 2min, "topics are not made")) return;
  if (!wait_for([this] { return audit_->disagreement().empty(); }, 30s,
                "C7: the brokers do not agree"))
    return machine_.simulator.trace(audit_->disagreement());
  wait_for_task("building the controller's state again", audit_->rebuild());
}

bool World::caught_up() {
  return std::ranges::all_of(consumers_, [this](const auto& consumer) {
    const auto positions = consumer->positions();
    const bool at_ends = std::ranges::all_of(positions, [&](const auto& entry) {
      const auto& [name, position] = entry;
      return read_to_the_end({id_of(name.topic), name.partition}, position);
    });
    return consumer->rewound() && !positions.empty() && at_ends;
  });
}

bool World::settle_producers() {
  for (const auto& producer : producers_) producer->quiesce();
  const auto settled = [this] {
    return std::ranges::all_of(producers_, [](const auto& one) { return one->settled(); });
  };
  return wait_for(settled, 3min, "CLI-1: producers have records without a result");
}

void World::check_all() {
  if (!settle_producers()) return;
  for (const auto& consumer : consumers_) consumer->read_all_again();
  const auto read = [this] { return caught_up(); };
  if (!wait_for(read, 30min, "consumers do not reach the end of their partitions")) return;
  for (const auto& consumer : consumers_) check_found(*consumer);
  if (flips_) heal_replicas();
  if (replicated_) compare_replicas();
  const auto forgotten = [this] {
    const auto& nodes = machine_.metadata->nodes;
    return std::ranges::none_of(
        nodes, [](const auto& node) { return node.first.starts_with("/deleting/"); });
  };
  wait_for(forgotten, 3min, "MET-2: something of deleted topics is left");
}

void World::wait_for_task(std::string_view what, asio::awaitable<void> task) {
  auto done = std::make_shared<bool>(false);
  const auto watch = [](asio::awaitable<void> task,
                        std::shared_ptr<bool> over) -> asio::awaitable<void> {
    co_await std::move(task);
    *over = true;
  };
  machine_.spawn(std::string(what), watch(std::move(task), done));
  wait_for([done] { return *done; }, 10min, fmt::format("{} does not end", what));
}

void World::run_drill() {
  drills_.emplace(machine_, extras_.fork(), nodes_, audit_->replicas(), isr_,
                  [this] { return ending_ || machine_.failed(); });
  wait_for_task("the drill", drills_->run(unclean_));
}

/// The last of all, since nothing is sent any more.
void World::replace_a_log() {
  if (!settle_producers()) return;
  wait_for_task("reading what is damaged", flips_->meet_all());
  // One replica at a time is damaged.
  if (!wait_for([this] { return flips_->left().empty(); }, 30s, "")) return;
  drills_.emplace(machine_, latest_.fork(), nodes_, audit_->replicas(), isr_,
                  [this] { return ending_ || machine_.failed(); });
  wait_for_task("the drill of a log", drills_->replace_a_log(*flips_));
}

/// What a broker meets of damage it has mended by the replicas in sync, within a minute.
void World::heal_replicas() {
  // Again for a broker that was down meanwhile.
  for (int i = 0; i < 9 && !flips_->left().empty() && !machine_.failed(); ++i) {
    wait_for_task("reading what is damaged", flips_->meet_all());
    wait_for([this] { return flips_->left().empty(); }, 10s, "");
  }
  if (!flips_->left().empty()) machine_.fail("what is damaged is not mended");
  for (const auto& damage : flips_->left())
    machine_.simulator.trace(fmt::format("{} is damaged at byte {} on {}", damage.file, damage.from,
                                         damage.node->name()));
}

void World::compare_replicas() {
  const auto& replicas = audit_->replicas();
  const auto in_sync = [&] { return replicas.not_in_sync().empty(); };
  if (!wait_for(in_sync, 30s, "C7: replicas do not get into sync"))
    return machine_.simulator.trace(replicas.not_in_sync());
  replicas.check_losses_reported();
  wait_for_task("the comparison of replicas", audit_->replicas().compare());
}

void World::check_found(const SimConsumer& consumer) {
  std::map<std::uint64_t, const SentRecords*> senders;
  for (const auto& producer : producers_) senders[producer->sent().producer()] = &producer->sent();
  const auto id = id_of(consumer.topic());
  require(consumer.topic_read().value_or(id) == id, "C5: {} is {} and holds records of {}",
          consumer.topic(), id.hex(), consumer.topic_read().value_or(id).hex());
  for (const auto& [partition, found] : consumer.found()) {
    auto& ledger = ledger_.of({id, partition});
    ledger.check_complete(found);
    check_order(ledger.name(), found, senders);
  }
}

void World::end_all() {
  for (const auto& producer : producers_) producer->stop();
  for (const auto& consumer : consumers_) consumer->stop();
  const auto stopped = [this] {
    return std::ranges::all_of(producers_, [](const auto& one) { return one->stopped(); }) &&
           std::ranges::all_of(consumers_, [](const auto& one) { return one->stopped(); });
  };
  // After a violation the world still has to be left in an orderly way.
  if (!machine_.simulator.run_until(stopped, 10min)) {
    machine_.fail("a client does not stop");
    may_go_ = false;
  }
  ending_ = true;
  if (!machine_.simulator.run_until([this] { return tasks_ == 0; }, 10min)) {
    machine_.fail("a broker does not stop" + newest_problem());
    may_go_ = false;
  }
}

void World::run() {
  start_clients();
  for (const auto& node : nodes_) machine_.spawn("node", keep_alive(*node));
  machine_.spawn("topics", change_topics());
  machine_.spawn("trouble", beside(trouble_.run()));
  for (int i = 0; replica_trouble_ && i < 2; ++i)
    machine_.spawn("trouble of replicas", beside(replica_trouble_->run()));
  if (more_) machine_.spawn("more trouble", beside(replica_trouble_->run_more(extras_.fork())));
  if (unclean_) machine_.spawn("records given up", beside(replica_trouble_->lose_majorities()));
  if (flips_) machine_.spawn("bit flips", beside(replica_trouble_->flip_bits()));
  const auto span = machine_.random.duration(5s, 150s);
  wait_for([] { return false; }, unclean_ ? std::max<base::Duration>(span, 80s) : span, "");
  if (!machine_.failed()) calm_down();
  if (!machine_.failed() && flips_)
    wait_for_task("the change of bits", replica_trouble_->flip_some_bits());
  if (!machine_.failed() && (drilled_ || unclean_)) run_drill();
  if (!machine_.failed() && flips_ && latest_.chance(0.5)) replace_a_log();
  if (!machine_.failed()) machine_.checked([this] { check_all(); });
  end_all();
}

void World::report(Report& report) {
  report.violation = machine_.violation;
  report.trace_hash = machine_.simulator.trace_hash();
  report.steps = machine_.simulator.steps();
  report.elections = audit_->replicas().elections();
  report.isr_shrinks = audit_->replicas().isr_shrinks();
  report.losses = audit_->replicas().losses_seen();
  for (const auto& node : nodes_) report.lives += node->lives();
  for (const auto& producer : producers_) report.records += producer->sent().delivered();
  report.trace = machine_.simulator.recent_trace();
}

Report run_world(const char* name, std::uint64_t seed, bool replicated) {
  Report report;
  report.world = name;
  report.seed = seed;
  auto world = std::make_unique<World>(seed, replicated);
  world->run();
  world->report(report);
  if (!world->may_go()) (void)world.release();
  return report;
}

}  // namespace

Report run_cluster_world(std::uint64_t seed) { return run_world("cluster", seed, false); }

Report run_replicated_world(std::uint64_t seed) { return run_world("replicated", seed, true); }

}  // namespace mq::sim
