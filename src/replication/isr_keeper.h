#pragma once

#include <atomic>
#include <functional>
#include <vector>

#include "base/wait_list.h"
#include "replication/cluster_view.h"
#include "replication/controller_link.h"
#include "replication/partition_table.h"

namespace mq::replication {

/// The partitions that one worker leads, and where they live.
struct LedPartitions {
  base::Runtime* runtime = nullptr;
  PartitionTable* table = nullptr;
};

/// Asks the controller for the changes of ISRs that this broker's partitions want, in one call for
/// all of them at a time, and tells them what came of it. Looks for followers that lag several
/// times within their time, and whenever a follower has caught up.
///
/// On the home runtime, but for wake().
class IsrKeeper {
 public:
  struct Config {
    BrokerId self;
    base::Duration look_every = std::chrono::milliseconds(2500);
    /// After a call that failed, and between two calls at least.
    base::Duration pause = std::chrono::milliseconds(100);
    base::Duration pause_after_failure = std::chrono::seconds(1);
    base::Duration call_timeout = std::chrono::seconds(5);
  };

  /// `epoch` is that of this broker's registration; `may_ask` is false without a lease. Everything
  /// given outlives it.
  IsrKeeper(Config config, base::Runtime& home, ControllerLink& controller, const ClusterView& view,
            std::vector<LedPartitions> led, std::function<BrokerEpoch()> epoch,
            std::function<bool()> may_ask);

  void start();
  /// Some partition wants a change. Any thread; cheap when nothing has been done about the last
  /// one.
  void wake();
  /// Nothing is asked for any more.
  void give_up();
  /// The same, and returns when nothing is under way.
  asio::awaitable<void> stop();

 private:
  using Proposals = std::vector<protocol::IsrProposal>;

  asio::awaitable<void> run();
  asio::awaitable<void> look();
  asio::awaitable<bool> ask(std::vector<Proposals> proposals);
  asio::awaitable<void> tell(std::vector<Proposals> proposals,
                             std::vector<protocol::IsrResult> results);
  [[nodiscard]] Isr::Registered registered() const;

  Config config_;
  base::Runtime& home_;
  ControllerLink& controller_;
  const ClusterView& view_;
  std::vector<LedPartitions> led_;
  std::function<BrokerEpoch()> epoch_;
  std::function<bool()> may_ask_;
  std::atomic<bool> woken_{false};
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // for what wake() posted
  bool stopping_ = false;
  base::TimePoint not_before_{};
  base::TimePoint look_at_{};
  base::WaitList changed_;
  base::TaskGroup tasks_;
};

}  // namespace mq::replication
