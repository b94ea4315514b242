#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "broker/broker.h"
#include "sim/broker_life.h"
#include "sim/broker_machine.h"
#include "support/crashable_file_system.h"
#include "support/pause_gate.h"
#include "support/sim_disk_executor.h"

namespace mq::sim {

/// How long the metadata store keeps the session of a process that it does not hear from.
constexpr base::Duration kSessionTimeout = std::chrono::seconds(6);

/// One machine of a cluster world, with its disk, and the broker process of the moment on it. Its
/// processes share the metadata store with those of the other nodes, and each has a session in it
/// that ends some time after the process can no longer reach the store.
class ClusterNode {
 public:
  ClusterNode(BrokerMachine& world, std::int32_t id, const replication::IsrLimits& isr = {});
  ~ClusterNode();

  /// Begins a process; none is there.
  void start();
  /// Ends it. After a crash nothing that it does has an effect any more.
  void end(BrokerEnd how);
  /// The process has ended and was taken away: start() may be called.
  [[nodiscard]] bool down() const noexcept { return life_ == nullptr; }
  [[nodiscard]] bool serving() const noexcept;
  /// Its start was refused, or it died by itself: only end() helps.
  [[nodiscard]] bool broken() const noexcept;
  /// It will die in the middle of its `changes`-th change to the disk from now.
  void die_after(std::uint64_t changes);
  /// The same as long as its owner wants; the session goes on.
  void cut_from_store();
  void rejoin_store();
  /// The process goes on and does not reach the metadata store; its session may end meanwhile.
  asio::awaitable<void> lose_the_store(base::Duration span);
  /// The process stands still and goes on; its session may end meanwhile, of which it hears a
  /// little later than it goes on.
  asio::awaitable<void> pause(base::Duration span);
  /// Nothing that waits for its disk gets on for so long.
  void stall_the_disk(base::Duration span);

  /// The disk as it is now, for replace_disk().
  [[nodiscard]] std::unique_ptr<testing::SimFileSystem> copy_disk() const { return disk_->clone(); }
  /// While it is down: another one takes the place of its disk. Null: an empty one.
  void replace_disk(std::unique_ptr<testing::SimFileSystem> disk);
  /// Something on its disk was damaged, so that not all of it can be recovered; or is whole again.
  void set_damaged(bool damaged) noexcept {
    damaged_ = damaged;
    if (damaged) ++disk_losses_;
  }
  /// How often something of its disk may have been lost.
  [[nodiscard]] std::uint64_t disk_losses() const noexcept { return disk_losses_; }
  /// So far its wall clock is ahead of everybody's, as long as the process lives. Nothing happens
  /// to one that has not heard what the others' clocks say (LOG-14).
  void set_clock_ahead(std::int64_t ms);
  /// Once it is down it is not started again before that.
  void rest_until(base::TimePoint time) noexcept { rests_until_ = time; }
  [[nodiscard]] base::TimePoint rests_until() const noexcept { return rests_until_; }

  [[nodiscard]] std::int32_t id() const noexcept { return id_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// Of the process that lives; null: none, or it is dead.
  [[nodiscard]] broker::Broker* broker() const noexcept;
  /// The same, also while it ends in good order, in which it still serves.
  [[nodiscard]] broker::Broker* process() const noexcept;
  /// Its newest image, null if it has none yet.
  [[nodiscard]] metadata::ImagePtr image() const;
  /// Null unless it leads the cluster and is ready.
  [[nodiscard]] controller::Controller* controller() const;
  [[nodiscard]] std::uint64_t lives() const noexcept { return lives_; }
  [[nodiscard]] testing::SimFileSystem& files() noexcept { return *disk_; }
  /// Of one that does not end.
  [[nodiscard]] bool stuck() const noexcept { return stuck_; }

 private:
  struct Life;
  using OpenedStore = base::Result<std::unique_ptr<metadata::MetadataStore>>;

  asio::awaitable<OpenedStore> open_store(Life& life);
  broker::BrokerParts parts(Life& life);
  asio::awaitable<void> run_start(Life& life);
  asio::awaitable<void> run_stop(Life& life);
  asio::awaitable<void> expire_later(std::uint64_t session);
  void die(Life& life, const char* where);
  void forget_session(Life& life);

  BrokerMachine& world_;
  std::int32_t id_;
  std::string name_;
  testing::SimRandom random_;
  replication::IsrLimits isr_;
  testing::PauseGate gate_{world_.simulator};
  std::unique_ptr<testing::SimFileSystem> disk_;
  int boots_ = 1;
  bool damaged_ = false;
  bool older_copy_ = false;
  std::uint64_t disk_losses_ = 0;
  base::TimePoint rests_until_{};
  std::uint64_t lives_ = 0;
  bool store_was_lost_ = false;  ///< by the present process
  bool stuck_ = false;
  std::unique_ptr<Life> life_;
};

using Nodes = std::vector<std::unique_ptr<ClusterNode>>;

/// Of those that think they are the controller, the one that was elected last; null: nobody does.
[[nodiscard]] ClusterNode* leading_node(const Nodes& nodes);

}  // namespace mq::sim
