// Brokers die, return, lose the store and their sessions in any order, while topics come and go:
// the rules hold after every step, and in the end everything fits together again.
#include "metadata/node_values.h"
#include "metadata/znode_layout.h"
#include "unit/controller/cluster_fixture.h"

namespace mq::controller {
namespace {

namespace layout = metadata::layout;
using metadata::StoreFault;

class ChaoticCluster : public mq::testing::Cluster {
 public:
  explicit ChaoticCluster(std::uint64_t seed) : Cluster(seed) {}
  void TestBody() override {}

  void run_for_rounds(int rounds) {
    start(3);
    const auto checking = std::make_shared<bool>(true);  // of the simulator, which lives longer
    simulator_.on_step([this, checking] {
      if (*checking) check();
    });
    for (int round = 0; round < rounds && broken_.empty(); ++round) {
      change_something();
      simulator_.run_for(std::chrono::milliseconds(pick(4000)));
      do_some_harm();
      simulator_.run_for(std::chrono::milliseconds(pick(9000)));
    }
    heal();
    EXPECT_TRUE(wait_until([this] { return settled() && nothing_left(); }, std::chrono::minutes(5)))
        << what_is_left_;
    EXPECT_EQ(broken_, "");
    EXPECT_TRUE(create("last", 3).status.ok());
    *checking = false;
  }

 private:
  std::uint64_t pick(std::uint64_t below) { return simulator_.random().below(below); }

  // Rules

  void fail(std::string why) {
    if (broken_.empty()) broken_ = std::move(why);
  }
  void check() {
    check_epochs();
    for (const auto& one : brokers_) {
      if (one->candidate.controller() != nullptr) check_image(*one->candidate.controller());
    }
  }
  // CTL-1: the epoch never falls, and one epoch has one controller.
  void check_epochs() {
    const auto node = state_->nodes.find(std::string(layout::kControllerEpoch));
    if (node == state_->nodes.end()) return;
    if (node->second.version < controller_epoch_) fail("the controller epoch fell");
    controller_epoch_ = node->second.version;
    for (const auto& one : brokers_) {
      const auto* controller = one->candidate.controller();
      if (controller == nullptr) continue;
      const auto known = elected_.emplace(controller->controller_epoch(), one.get()).first;
      if (known->second != one.get()) fail("two controllers of one epoch");
      if (controller->controller_epoch() > controller_epoch_) fail("an epoch that nobody gave");
    }
  }
  // CTL-2, CTL-5
  void check_image(const Controller& controller) {
    const auto image = controller.image();
    auto& seen = seen_[controller.controller_epoch()];
    if (image->version() == seen) return;
    if (image->version() < seen) fail("an image fell");
    seen = image->version();
    for (const auto& [name, topic] : image->topics()) {
      for (const auto& partition : topic->partitions) {
        const auto node = state_->nodes.find(layout::partition_state(partition.id));
        if (node == state_->nodes.end()) continue;  // deleted by a later controller
        if (partition.version.value() > node->second.version)
          fail("the image is ahead of the store: " + partition.id.text());
        const auto key = std::pair(partition.id, partition.leader_epoch);
        const auto led = leaders_.emplace(key, partition.leader).first;
        if (led->second != partition.leader)
          fail("two leaders in one epoch: " + partition.id.text());
        check_members(partition);
      }
    }
  }

  // CTL-7, CTL-8
  void check_members(const PartitionAssignment& partition) {
    const auto in = [](const std::vector<model::IsrMember>& members, model::BrokerId broker) {
      return std::ranges::count(members, broker, &model::IsrMember::broker) > 0;
    };
    if (partition.leader != model::BrokerId() && !in(partition.isr, partition.leader))
      fail("a leader outside of its ISR: " + partition.id.text());
    for (const auto& member : partition.isr) {
      if (in(partition.elr, member.broker)) fail("in ISR and ELR: " + partition.id.text());
      if (std::ranges::count(partition.replicas, member.broker) != 1)
        fail("a member without a replica: " + partition.id.text());
    }
    if (partition.isr.empty()) fail("an empty ISR: " + partition.id.text());
    if (partition.isr.size() >= partition.min_isr && !partition.elr.empty())
      fail("an ELR beside a whole ISR: " + partition.id.text());
  }

  // What happens

  void change_something() {
    auto* const leader = controlling();
    if (leader == nullptr) return;
    auto& controller = *leader->candidate.controller();
    const auto name = "t" + std::to_string(pick(4));
    const auto deadline = in(std::chrono::seconds(5));
    for (const auto& [topic_name, topic] : controller.image()->topics()) {
      for (const auto& partition : topic->partitions) ask_for_another_isr(partition, deadline);
    }
    switch (pick(5)) {
      case 0:
        return begin(controller.delete_topic(name, deadline));
      case 2:
        return begin(controller.alter_topic(another_min_isr(name), deadline));
      case 1:
        return begin(controller.add_partitions(name, static_cast<std::int32_t>(pick(9)), deadline));
      default:
        protocol::NewTopic topic;
        topic.name = name;
        topic.partitions = static_cast<std::int32_t>(1 + pick(5));
        topic.replicas = static_cast<std::int32_t>(1 + pick(3));
        return begin(controller.create_topic(std::move(topic), false, deadline));
    }
  }
  protocol::AlterTopic another_min_isr(const std::string& name) {
    protocol::AlterTopic change;
    change.name = name;
    change.set["min_isr"] = std::to_string(1 + pick(3));
    return change;
  }
  /// Sometimes, and as by its leader; replicas that catch up are those that are registered.
  void ask_for_another_isr(const PartitionAssignment& partition, base::TimePoint deadline) {
    auto* const leader =
        partition.leader.value() > 0 && pick(2) == 0 ? running(partition.leader.value()) : nullptr;
    auto* const there = controlling();
    if (leader == nullptr || there == nullptr || partition.replicas.size() == 1) return;
    protocol::AlterIsrRequest request;
    request.broker = leader->id;
    request.broker_epoch = leader->member.epoch().value();
    std::vector<model::IsrMember> isr;
    for (const auto replica : partition.replicas) {
      if (replica.value() == leader->id || pick(2) == 0)
        isr.push_back({replica, broker(replica.value()).member.epoch()});
    }
    request.entries.push_back(
        {partition.id, partition.leader_epoch, partition.version, std::move(isr)});
    proposals_.push_back(mq::testing::start_for_outcome(
        simulator_.executor(),
        there->candidate.controller()->alter_isr(std::move(request), deadline), [] {}));
  }
  void begin(asio::awaitable<protocol::TopicResult> change) {
    changes_.push_back(
        mq::testing::start_for_outcome(simulator_.executor(), std::move(change), [] {}));
  }
  /// The newest process of that id, if it was not killed.
  mq::testing::FakeBroker* running(int id) {
    auto& one = broker(id);
    return one.reachable() ? &one : nullptr;
  }
  void do_some_harm() {
    const int id = static_cast<int>(1 + pick(3));
    auto* const one = running(id);
    switch (pick(7)) {
      case 0:
        if (one != nullptr) one->kill();
        return;
      case 1:
        if (one != nullptr) one->stop();
        return;
      case 2:
        if (one != nullptr) metadata::expire_session(*state_, one->store->session());
        return;
      case 3:
        return cut(id);
      case 4:
        state_->fault = [this](bool) {
          const auto roll = pick(100);
          if (roll < 4) return StoreFault::lost_answer;
          if (roll < 8) return StoreFault::lost_request;
          return roll < 16 ? StoreFault::unavailable : StoreFault::none;
        };
        return;
      case 5:
        state_->fault = nullptr;
        return;
      default:
        return return_some();
    }
  }
  /// Its session may end meanwhile.
  void cut(int id) {
    auto& one = broker(id);
    if (!one.reachable()) return;
    one.cut_off();
    cut_.insert(&one);
    if (pick(2) == 0) return;
    const auto session = one.store->session();
    simulator_.start_timer(in(kSessionTime),
                           [this, session] { metadata::expire_session(*state_, session); });
  }
  void return_some() {
    for (auto* one : cut_) one->reconnect();
    cut_.clear();
    for (int id = 1; id <= 3; ++id) {
      if (running(id) == nullptr) start_again(id);
    }
  }
  /// Faults of the store may keep it from coming up; the next try does.
  void start_again(int id) {
    const auto fault = std::exchange(state_->fault, nullptr);
    EXPECT_EQ(add(id).start(), Error());
    state_->fault = fault;
  }
  void heal() {
    state_->fault = nullptr;
    return_some();
    wait_until(
        [this] {
          const auto ended = [](const auto& one) { return one->value.has_value(); };
          return std::ranges::all_of(changes_, ended) && std::ranges::all_of(proposals_, ended);
        },
        std::chrono::minutes(3));
  }

  /// Nodes and logs are of topics that the image has.
  bool nothing_left() {
    if (controlling() == nullptr) return left("no controller");
    const auto image = controlling()->candidate.controller()->image();
    std::set<model::PartitionId> partitions;
    std::set<std::string> states;
    for (const auto& [name, topic] : image->topics()) {
      if (topic->hidden_from >= 0) return left(name + " is hidden");
      states.insert(layout::topic_state(topic->id));
      for (const auto& partition : topic->partitions) partitions.insert(partition.id);
    }
    if (paths("/topics/").size() != image->topics().size()) return left("topics");
    if (!paths("/deleting/").empty()) return left(paths("/deleting/")[0]);
    for (const auto& path : paths("/state/")) {
      const auto folder = path.substr(0, std::string("/state/").size() + 32);
      if (!states.contains(folder)) return left(path);
    }
    for (const auto& partition : partitions) {
      if (!state_->nodes.contains(layout::partition_state(partition)))
        return left("no state of " + partition.text());
    }
    return true;
  }
  bool left(std::string what) {
    what_is_left_ = std::move(what);
    return false;
  }

  std::string broken_;
  std::string what_is_left_;
  std::int32_t controller_epoch_ = 0;
  std::map<std::int32_t, const mq::testing::FakeBroker*> elected_;
  std::map<std::int32_t, std::uint64_t> seen_;
  std::map<std::pair<model::PartitionId, model::LeaderEpoch>, model::BrokerId> leaders_;
  std::set<mq::testing::FakeBroker*> cut_;
  std::vector<std::shared_ptr<mq::testing::RunOutcome<protocol::TopicResult>>> changes_;
  std::vector<std::shared_ptr<mq::testing::RunOutcome<protocol::AlterIsrResponse>>> proposals_;
};

TEST(ClusterChaos, RulesHoldWhateverHappens) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ChaoticCluster cluster(seed);
    cluster.run_for_rounds(12);
    if (::testing::Test::HasFailure()) break;
  }
}

}  // namespace
}  // namespace mq::controller
