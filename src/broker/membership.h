#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "broker/clock_watch.h"
#include "broker/core.h"
#include "controller/candidate.h"
#include "controller/member.h"
#include "controller/producer_ids.h"
#include "replication/cluster_view.h"
#include "replication/image_puller.h"
#include "replication/remote_controller.h"
#include "replication/replica_reporter.h"

namespace mq::broker {

struct MembershipConfig {
  controller::MemberConfig member;
  controller::ControllerConfig controller;
};

/// A call that the controller of this process answers, or the one that leads the cluster elsewhere.
class ControllerRoute final : public replication::ControllerLink {
 public:
  ControllerRoute(base::Runtime& home, replication::RemoteController& remote)
      : home_(home), remote_(remote) {}

  /// Null: the controller is not in this process.
  void set_local(controller::Controller* local) noexcept { local_ = local; }

  asio::awaitable<base::Result<protocol::PullImageResponse>> pull(
      protocol::PullImageRequest request, base::TimePoint deadline) override;
  asio::awaitable<base::Result<protocol::ReportReplicasResponse>> report(
      protocol::ReportReplicasRequest request, base::TimePoint deadline) override;
  asio::awaitable<base::Result<protocol::AlterIsrResponse>> alter_isr(
      protocol::AlterIsrRequest request, base::TimePoint deadline) override;
  asio::awaitable<base::Result<protocol::LeaveBrokerResponse>> leave(
      protocol::LeaveBrokerRequest request, base::TimePoint deadline) override;

 private:
  template <class Response, class Request>
  asio::awaitable<base::Result<Response>> call(
      asio::awaitable<Response> (controller::Controller::*here)(Request, base::TimePoint),
      asio::awaitable<base::Result<Response>> (replication::RemoteController::*there)(
          Request, base::TimePoint),
      Request request, base::TimePoint deadline);

  base::Runtime& home_;
  replication::RemoteController& remote_;
  controller::Controller* local_ = nullptr;
};

/// This broker's part in the cluster: registered and with a lease, a candidate for the controller,
/// with the newest cluster image, telling the controller of its replicas. The same with one broker
/// and a store in a file, where it is elected at once and all calls stay in the process.
///
/// On the home runtime, but for view().image() and has_lease().
class Membership {
 public:
  /// Everything given outlives it.
  Membership(MembershipConfig config, Core& core, metadata::MetadataStore& store,
             base::Network& network);
  ~Membership();

  /// Registers, and begins to stand for election and to pull images. `waiting` is told, in words,
  /// what it waits for. Errors: those of Member::start().
  asio::awaitable<base::Result<void>> start(std::function<void(const std::string&)> waiting);
  /// Told when another broker has taken this one's id; before start().
  void on_id_taken(std::function<void()> listener) { member_.on_taken(std::move(listener)); }
  /// The first image; null after stop(). `waiting` is told why it takes long.
  asio::awaitable<metadata::ImagePtr> first_image();

  [[nodiscard]] replication::ClusterView& view() noexcept { return view_; }
  [[nodiscard]] const replication::ClusterView& view() const noexcept { return view_; }
  [[nodiscard]] replication::ImagePuller& puller() noexcept { return puller_; }
  [[nodiscard]] replication::ReplicaReporter& reporter() noexcept { return reporter_; }
  /// To whoever is the controller.
  [[nodiscard]] replication::ControllerLink& controller_link() noexcept { return route_; }

  /// Null while this process has no controller that is ready.
  [[nodiscard]] controller::Controller* controller() const noexcept {
    return candidate_.controller();
  }
  /// Who is known to lead the cluster; nothing: nobody.
  [[nodiscard]] const std::optional<controller::ControllerAddress>& leader() const noexcept {
    return candidate_.leader();
  }
  /// The answer to a request that only the controller can serve, while it is not here.
  [[nodiscard]] protocol::Status not_controller() const;
  [[nodiscard]] model::BrokerEpoch epoch() const noexcept { return member_.epoch(); }
  [[nodiscard]] bool has_lease(base::TimePoint now) const noexcept {
    return member_.has_lease(now);
  }
  /// What keeps the metadata from being changed now, for people; empty: nothing known.
  [[nodiscard]] std::string trouble() const;
  /// Why this broker knows of no change any more; empty: it does.
  [[nodiscard]] std::string image_trouble() const { return puller_.complaint(); }
  /// Which of this broker's topic defaults are not in force; empty: all are.
  [[nodiscard]] const std::string& differing_defaults() const noexcept {
    return puller_.differing_defaults();
  }
  /// What is wrong with this broker's clock, or with all of them; empty: nothing.
  [[nodiscard]] std::string clock_trouble() const { return clock_watch_.alarm(); }
  [[nodiscard]] std::optional<std::int64_t> clock_ahead_ms() const {
    return clock_watch_.ahead_ms();
  }
  [[nodiscard]] const std::vector<std::string>& warnings() const noexcept {
    return member_.warnings();
  }
  /// A producer id that was never given out before (IDM-5).
  asio::awaitable<base::Result<std::int64_t>> next_producer_id() { return producer_ids_.next(); }

  /// Has what this broker leads led elsewhere, and itself taken out of every ISR, before a stop;
  /// where a living replica is not in sync yet it is waited for until `deadline`, and what nobody
  /// else can lead is named in the log. The image version that shows it; nothing: not done by
  /// `deadline`.
  asio::awaitable<std::optional<std::uint64_t>> hand_over(base::TimePoint deadline);
  /// Nobody waits for an image or a report any more.
  void give_up();
  /// Gives up the office, if it has it, and every pull and report. Bounded.
  asio::awaitable<void> stop_following();
  /// Leaves the cluster. Bounded; after stop_following().
  asio::awaitable<void> leave();

 private:
  /// What a broker that waits for a damaged topic at its start was to keep then, and since.
  struct StartWait {
    bool begun = false;
    std::set<model::PartitionId> there_before;
    std::set<model::PartitionId> refused;
  };

  void refuse_to_open(const metadata::ClusterImage& image, StartWait& wait);
  void adopt_epoch(model::BrokerEpoch epoch);
  void adopt_leader(const std::optional<controller::ControllerAddress>& leader);
  void try_now();

  Core& core_;
  metadata::MetadataStore& store_;
  std::function<void(const std::string&)> waiting_;
  ClockWatch clock_watch_;
  replication::ClusterView view_;
  replication::RemoteController remote_;
  ControllerRoute route_;
  replication::ImagePuller puller_;
  replication::ReplicaReporter reporter_;
  controller::Member member_;
  controller::Candidate candidate_;
  controller::ProducerIds producer_ids_;
};

}  // namespace mq::broker
