#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/wait_list.h"
#include "broker/core.h"
#include "broker/listener.h"
#include "broker/membership.h"
#include "broker/replica_keeper.h"
#include "config/broker_config.h"
#include "metadata/store.h"
#include "replication/isr_keeper.h"

namespace mq::broker {

/// What a broker is made of. The daemon gives real parts, the simulator its own; all of them
/// outlive the broker.
struct BrokerParts {
  config::BrokerConfig config;
  Limits limits;
  std::vector<base::Runtime*> workers;  ///< one per worker; the first one is home
  base::Network* network = nullptr;     ///< of the home runtime
  MoveStream move_stream;               ///< needed with more than one worker
  base::FileSystem* files = nullptr;
  base::DiskExecutor* disk_executor = nullptr;  ///< of the first disk
  /// Of the second disk and so on, so that a slow disk holds up nobody else's work; a disk without
  /// one shares the first's.
  std::vector<base::DiskExecutor*> more_disk_executors;
  /// One per disk; a disk without one uses its executor above for everything.
  std::vector<storage::DiskThreads> disk_threads;
  base::Counters* counters = nullptr;
  /// Opens the metadata store; `directory` is the first data directory, locked by then, where the
  /// store is unless the configuration names servers.
  std::function<asio::awaitable<base::Result<std::unique_ptr<metadata::MetadataStore>>>(
      std::string directory)>
      open_metadata;
  /// Why the last open_metadata failed, where the error does not say it all; may be null.
  const std::string* metadata_trouble = nullptr;
  std::string boot_id;                             ///< of the machine's boot; empty: unknown
  std::vector<std::string> mount_ids;              ///< one per disk; empty, or none: unknown
  std::vector<std::string> warnings;               ///< for `mqctl status`
  std::vector<config::EffectiveSetting> settings;  ///< for `mqctl config show`
  /// Told what a start or stop is doing; may be empty.
  std::function<void(const std::string&)> on_status;
  /// Told of each partition whose log is recovered, before anybody is served from it; may be empty.
  std::function<void(const model::PartitionId&)> on_recovered;
  /// Told when another broker has taken this one's id: this process has to end. May be empty.
  std::function<void()> on_id_taken;
  /// Why so many partitions cannot be served here; an empty answer: they can. May be empty.
  std::function<std::string(std::size_t partitions)> why_not_served;
};

/// One broker: workers, listener, membership, metadata store and disks, wired together.
///
/// start() and stop() run on the home runtime, once each. A start that was refused says why in
/// refusal() and still wants its stop(). stop() ends in bounded time; when it returns timed_out a
/// disk or the metadata store hangs, and the process has to end without destroying the broker.
class Broker {
 public:
  explicit Broker(BrokerParts parts);
  ~Broker();
  Broker(const Broker&) = delete;
  Broker& operator=(const Broker&) = delete;

  /// Lock and identity of the data directory, listening socket, metadata, registration, the first
  /// cluster image, recovery. It serves from the recovery on: each partition as soon as its log is
  /// recovered and the controller has given it a leader epoch. It has ended when that is so for
  /// all. Nothing of another broker's is written on a refusal.
  asio::awaitable<base::Result<void>> start();
  /// A start that waits for others ends soon, with an error.
  void give_up_start();
  /// Has its replicated partitions led elsewhere, then refuses new work, lets what is under way
  /// end, flushes and leaves the clean marker.
  asio::awaitable<base::Result<void>> stop();

  /// Why start() failed, as one line for the operator, under its number of the error table.
  [[nodiscard]] const protocol::Status& refusal() const noexcept { return refusal_; }
  /// Where clients connect; after start().
  [[nodiscard]] const base::Endpoint& advertised() const noexcept { return core_.advertised; }
  [[nodiscard]] base::Endpoint bound() const;
  [[nodiscard]] const Core& core() const noexcept { return core_; }
  [[nodiscard]] const storage::RecoverySummary& recovery() const noexcept { return recovery_; }

 private:
  asio::awaitable<base::Result<void>> open_disks();
  asio::awaitable<base::Result<std::vector<storage::DataDirectory>>> lock_directories();
  base::Result<void> adopt_directories(std::vector<storage::DataDirectory> directories);
  asio::awaitable<base::Result<void>> join_cluster();
  MembershipConfig membership_config() const;
  void make_isr_keeper();
  asio::awaitable<base::Result<void>> open_metadata(std::string directory);
  asio::awaitable<base::Result<void>> open_local_metadata(std::string directory);
  asio::awaitable<base::Result<void>> open_shared_metadata(std::string directory);
  [[nodiscard]] bool metadata_is_shared() const;
  [[nodiscard]] std::string metadata_place(const std::string& directory) const;
  asio::awaitable<base::Result<void>> recover();
  asio::awaitable<base::Result<void>> recover_disks();
  asio::awaitable<void> serve_recovered();
  void note_progress(const storage::RecoveryProgress& at);
  asio::awaitable<base::Result<void>> listen();
  [[nodiscard]] bool has_replicated_partitions() const;
  asio::awaitable<void> hand_over_partitions();
  asio::awaitable<void> stop_serving();
  asio::awaitable<void> stop_disks();
  asio::awaitable<void> close_metadata();
  base::Error refuse(base::Error error, protocol::WireError number, std::string text);
  void status(const std::string& text) const;
  [[nodiscard]] base::Uuid new_uuid();

  BrokerParts parts_;
  Core core_;
  base::Runtime& home_;
  base::Uuid incarnation_;
  protocol::Status refusal_;
  std::unique_ptr<metadata::MetadataStore> metadata_;
  std::unique_ptr<storage::DiskGroup> disks_;
  std::vector<std::string> unreadable_;  ///< by disk: why its directory could not be opened
  std::unique_ptr<Membership> membership_;
  std::unique_ptr<ReplicaKeeper> keeper_;
  std::unique_ptr<replication::IsrKeeper> isr_keeper_;
  std::unique_ptr<Listener> listener_;
  bool started_ = false;
  storage::RecoverySummary recovery_;
  base::TimePoint progress_logged_{};
  base::TaskGroup tasks_;
};

}  // namespace mq::broker
