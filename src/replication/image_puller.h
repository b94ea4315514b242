#pragma once

#include <functional>
#include <map>
#include <string>

#include "base/wait_list.h"
#include "model/ids.h"
#include "replication/cluster_view.h"
#include "replication/controller_link.h"

namespace mq::replication {

struct ImagePullerConfig {
  model::BrokerId broker;
  model::TopicSettings topic_defaults;             ///< of this broker
  base::Duration wait{std::chrono::seconds(2)};    ///< of one long poll
  base::Duration margin{std::chrono::seconds(3)};  ///< behind it the controller counts as silent
};

/// Keeps a broker's view of the cluster new: one long poll after the other at the controller,
/// whoever that is. Without a controller the view stays as it is, and the broker goes on with it.
///
/// The next pull comes only after applied() has said that the image is in force, because a pull
/// tells the controller so. On the home runtime.
class ImagePuller {
 public:
  /// Everything given outlives it.
  ImagePuller(ImagePullerConfig config, ControllerLink& link, ClusterView& view,
              base::Runtime& home);

  /// Told of each answer what the brokers' clocks say together, and when that was.
  void on_cluster_time(std::function<void(const protocol::ClusterTime&, base::TimePoint)> told) {
    cluster_time_ = std::move(told);
  }
  void start();
  /// After a registration.
  void set_epoch(model::BrokerEpoch epoch);
  /// The controller may be another one: no more waiting before the next try.
  void try_now();
  /// Leaders and removals of the image of this version are in force on all workers.
  void applied(std::uint64_t version);
  /// Why the last try brought nothing, for people; empty: it brought something.
  [[nodiscard]] const std::string& trouble() const noexcept { return trouble_; }
  /// The same, with since when, once it has lasted so long that it is no election.
  [[nodiscard]] std::string complaint() const;
  /// How this broker's topic defaults differ from the controller's, which are in force; empty: they
  /// do not.
  [[nodiscard]] const std::string& differing_defaults() const noexcept { return differing_; }
  asio::awaitable<void> stop();

 private:
  asio::awaitable<void> run();
  asio::awaitable<bool> pull();
  bool take(const protocol::PullImageResponse& answer);
  void take_time(const protocol::PullImageResponse& answer, base::TimePoint sent);
  void compare_defaults();
  asio::awaitable<void> pause();
  [[nodiscard]] bool may_pull() const;
  bool fail(std::string why);

  ImagePullerConfig config_;
  ControllerLink& link_;
  ClusterView& view_;
  base::Runtime& home_;
  model::BrokerEpoch epoch_;
  std::uint64_t applied_ = 0;
  bool snapshot_wanted_ = false;
  bool hurry_ = false;
  bool stopping_ = false;
  base::Duration back_off_{};
  std::string trouble_;
  base::TimePoint trouble_since_{};
  bool trouble_told_ = false;
  // Of the newest answer with topics: whose defaults are in force, what it said, what that means.
  std::int32_t controller_ = -1;
  std::map<std::string, std::string> defaults_told_;
  model::TopicSettings defaults_;
  std::string differing_;
  std::function<void(const protocol::ClusterTime&, base::TimePoint)> cluster_time_;
  base::WaitList changed_;
  base::TaskGroup tasks_;
};

}  // namespace mq::replication
