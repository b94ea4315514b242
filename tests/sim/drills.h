#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/bit_flips.h"
#include "sim/cluster_node.h"
#include "sim/replica_audit.h"

namespace mq::sim {

/// What a cluster in which all is calm does about one trouble, and how soon: in the middle of many
/// nothing can be said of that.
class Drills {
 public:
  /// `over`: nothing more is begun, or judged.
  Drills(BrokerMachine& machine, testing::SimRandom random, const Nodes& nodes,
         const ReplicaAudit& replicas, const replication::IsrLimits& isr,
         std::function<bool()> over)
      : machine_(machine),
        random_(random),
        nodes_(nodes),
        replicas_(replicas),
        isr_(isr),
        over_(std::move(over)) {}

  /// One of them; `unclean`: there are topics with unclean_election, and they give records up.
  asio::awaitable<void> run(bool unclean);
  /// While nothing is appended: a follower's log is damaged and made anew, and its leader, who has
  /// heard all of what it was, hears nothing of that.
  asio::awaitable<void> replace_a_log(BitFlips& flips);

 private:
  struct Struck {
    model::PartitionId id;
    ClusterNode* follower = nullptr;  ///< null: none was
    const ClusterNode* leader = nullptr;
    model::Offset end;  ///< of the follower's log
  };

  asio::awaitable<bool> begins_calm();
  Struck strike_a_follower(BitFlips& flips, const ClusterNode& controller);
  [[nodiscard]] std::string not_made_anew(const Struck& struck) const;
  asio::awaitable<void> lose(BrokerEnd how, base::Duration limit, std::string_view rule);
  asio::awaitable<void> cut_the_controller_off();
  asio::awaitable<void> give_records_up();
  [[nodiscard]] std::string not_left_behind(const ClusterNode& left) const;
  [[nodiscard]] std::string not_led_by(const ClusterNode& left) const;
  asio::awaitable<void> refuse_connections();

  /// Says what is still to be done; empty: nothing.
  using Missing = std::function<std::string()>;
  asio::awaitable<void> expect(base::Duration limit, Missing missing, std::string_view rule);
  [[nodiscard]] std::string not_led_without(const ClusterNode& lost) const;
  [[nodiscard]] std::string not_confirmed_above(
      const std::map<model::PartitionId, model::Offset>& ends) const;
  [[nodiscard]] std::string other_controller_than(const ClusterNode& lost) const;
  [[nodiscard]] bool disturbed(const ClusterNode* but = nullptr) const;
  [[nodiscard]] std::int32_t registrations(const ClusterNode& node) const;
  [[nodiscard]] bool registered(const ClusterNode& node) const;

  BrokerMachine& machine_;
  testing::SimRandom random_;
  const Nodes& nodes_;
  const ReplicaAudit& replicas_;
  replication::IsrLimits isr_;
  std::function<bool()> over_;
  std::vector<std::uint64_t> lives_;  ///< of the nodes, when it began
};

}  // namespace mq::sim
