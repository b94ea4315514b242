#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/network.h"
#include "base/wait_list.h"
#include "controller/node_writer.h"
#include "model/ids.h"

namespace mq::controller {

struct MemberConfig {
  model::BrokerId broker;
  base::Uuid incarnation;         ///< drawn anew at every process start
  std::vector<base::Uuid> disks;  ///< identities of the broker's data directories
  base::Endpoint advertised;
  std::string rack{};  ///< empty: none
  /// How long start() waits for the session of an earlier process with the same directories.
  base::Duration earlier_session_max{std::chrono::seconds(60)};
};

/// This broker's place in the cluster: its registration, which gives it a broker epoch, and its
/// lease. It touches no topic and no partition. A registration that is gone, because the store
/// ended the session or somebody removed a node of it, is followed by another one, with a new
/// epoch, without a restart (CTL-4).
///
/// On the home runtime, but for has_lease().
class Member {
 public:
  /// `store` and `home` outlive it. The caller holds the locks of the data directories.
  Member(MemberConfig config, metadata::MetadataStore& store, base::Runtime& home);
  ~Member();
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  /// Makes the folders of the tree and registers. While the session of an earlier process with the
  /// same data directories lives, it waits for its end. broker_id_in_use: another broker has this
  /// id; it is not disturbed, and a log line says who it is.
  asio::awaitable<Result<void>> start();
  /// Tells, in words, what start() waits for.
  void on_waiting(std::function<void(const std::string&)> listener) {
    waiting_ = std::move(listener);
  }
  /// After each registration but the first, before anything else is written in the new session.
  void on_epoch(std::function<void(model::BrokerEpoch)> listener) {
    listeners_.push_back(std::move(listener));
  }

  /// Called once when, after a lost session, another broker has been registered under this id for a
  /// minute: two processes that serve as one broker harm, and this one is not known to anybody.
  void on_taken(std::function<void()> listener) { taken_ = std::move(listener); }

  /// Of the newest registration; -1 before start().
  [[nodiscard]] model::BrokerEpoch epoch() const noexcept { return epoch_; }
  /// False from the moment that the session is lost until there is a new registration.
  [[nodiscard]] bool registered() const noexcept { return registered_; }
  /// Whether the registration is certain to last at `now`: true for half a session time from when
  /// the last acknowledged heartbeat was sent. Always true with a store in a file. Any thread.
  [[nodiscard]] bool has_lease(base::TimePoint now) const noexcept {
    return now.time_since_epoch().count() < lease_end_.load(std::memory_order_acquire);
  }
  /// Things about this registration that a person should know: a disk that was there before is not.
  [[nodiscard]] const std::vector<std::string>& warnings() const noexcept { return warnings_; }

  [[nodiscard]] const MemberConfig& config() const noexcept { return config_; }

  /// Leaves the cluster: the live node goes at once where the store answers, with the session where
  /// it does not. The owner has told the store to hurry (shorten_waits()).
  asio::awaitable<void> stop();

 private:
  struct Found;

  asio::awaitable<Result<void>> make_folders();
  asio::awaitable<Result<Found>> look();
  asio::awaitable<Result<bool>> try_register(Found found);
  asio::awaitable<Result<bool>> adopt(Found found);
  Result<void> may_wait_for(const Found& found, base::TimePoint deadline);
  [[nodiscard]] bool is_ours(const Found& found) const;
  void compare_disks(const metadata::Node& epoch);
  void begin_lease();

  void on_session_lost();
  /// The registration has ended; another one follows.
  void register_anew();
  asio::awaitable<void> keep_registering();
  asio::awaitable<Result<bool>> register_again();
  asio::awaitable<Result<void>> keep_epoch_rising(Found& found);
  asio::awaitable<void> keep_lease();
  asio::awaitable<void> watch_registration();
  asio::awaitable<Result<void>> beat(base::Duration session_time);

  MemberConfig config_;
  metadata::MetadataStore& store_;
  base::Runtime& home_;
  NodeWriter writer_;
  model::BrokerEpoch epoch_;
  bool registered_ = false;
  bool registering_ = false;
  bool told_of_waiting_ = false;
  bool stopping_ = false;
  bool watching_ = false;
  bool beat_now_ = false;  ///< the registration may have been ended
  std::int32_t live_version_ = 0;
  std::optional<std::int32_t> heartbeat_version_;
  base::TimePoint registration_sent_{};
  std::atomic<std::int64_t> lease_end_{0};  ///< on the runtime's clock
  std::vector<std::string> warnings_;
  std::function<void(const std::string&)> waiting_;
  std::function<void()> taken_;
  std::vector<std::function<void(model::BrokerEpoch)>> listeners_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // of callbacks that come later
  base::WaitList stopped_;
  base::TaskGroup tasks_;
};

}  // namespace mq::controller
