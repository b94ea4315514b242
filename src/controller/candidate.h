#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "controller/controller.h"
#include "controller/member.h"

namespace mq::controller {

/// Which broker leads the cluster, as /ctl/leader says it.
struct ControllerAddress {
  model::BrokerId broker;
  base::Endpoint advertised;
  friend bool operator==(const ControllerAddress&, const ControllerAddress&) = default;
};

/// Every broker would be the controller; the metadata store lets one (CTL-1). This one tries when
/// nobody is, and watches otherwise (CTL-6). While it is elected it owns a Controller, which
/// ends as soon as the session is lost or another controller has been elected; then it is a
/// candidate again.
///
/// On the home runtime.
class Candidate {
 public:
  /// Everything given outlives it. `config.broker` and `config.advertised` are the member's.
  Candidate(ControllerConfig config, metadata::MetadataStore& store, Member& member,
            base::Runtime& home);
  ~Candidate();
  Candidate(const Candidate&) = delete;
  Candidate& operator=(const Candidate&) = delete;

  /// Called with the controller of this process when it has one that is ready, and with null before
  /// it ends: no new calls after that; calls under way end by themselves before it is destroyed.
  void on_controller(std::function<void(Controller*)> listener) {
    controller_listeners_.push_back(std::move(listener));
  }
  /// Called whenever another broker (or this one) turns out to lead, or nobody does.
  void on_leader(std::function<void(const std::optional<ControllerAddress>&)> listener) {
    leader_listeners_.push_back(std::move(listener));
  }

  /// Asked for the newest controller epoch of which this broker has an image, -1: none. A
  /// controller of this broker has a higher one (CTL-1), also where the store has lost the number
  /// or was restored from a copy.
  void on_known_epoch(std::function<std::int32_t()> known) { known_epoch_ = std::move(known); }

  /// The connection to the controller elsewhere has ended, and not by our doing. Where its process
  /// is dead then, its office is ended before its session (CTL-9).
  void lost_controller();

  /// After Member::start(), and with the listeners in place.
  void start();
  /// Null while this broker is not the controller, or not ready yet.
  [[nodiscard]] Controller* controller() const noexcept {
    return ready_ ? controller_.get() : nullptr;
  }
  [[nodiscard]] const std::optional<ControllerAddress>& leader() const noexcept { return leader_; }
  /// Why this broker was elected and does not lead; empty: nothing known, or another one leads.
  [[nodiscard]] const std::string& trouble() const noexcept { return trouble_; }

  /// Gives the office up, at once where the store answers. Bounded.
  asio::awaitable<void> stop();

 private:
  asio::awaitable<void> run();
  asio::awaitable<Result<void>> look();
  asio::awaitable<Result<void>> watch_leader();
  asio::awaitable<void> look_for(ControllerAddress leader);
  asio::awaitable<bool> end_office_of_dead(ControllerAddress leader);
  asio::awaitable<Result<void>> stand();
  asio::awaitable<Result<metadata::Node>> load_epoch();
  asio::awaitable<Result<metadata::Node>> rising_epoch();
  asio::awaitable<Result<void>> lead(std::int32_t controller_epoch);
  void note_failure(Error error);
  void let_others_stand();
  [[nodiscard]] base::TimePoint next_look(bool looked) const;
  asio::awaitable<void> end_controller();
  asio::awaitable<Result<void>> release();
  void on_session_lost();
  void set_leader(std::optional<ControllerAddress> leader);
  void wake();

  ControllerConfig config_;
  metadata::MetadataStore& store_;
  Member& member_;
  base::Runtime& home_;
  NodeWriter writer_;
  std::unique_ptr<Controller> controller_;
  bool ready_ = false;
  bool woken_ = false;
  bool watching_ = false;
  bool looking_for_leader_ = false;
  bool stopping_ = false;
  std::optional<ControllerAddress> leader_;
  base::TimePoint leader_since_{};
  std::string trouble_;
  Error said_;                        ///< why the last election led to nothing; empty: it did
  base::Duration pause_{};            ///< grows with each election that leads to nothing
  base::Duration unheard_pause_{};    ///< grows with each office in which nobody was heard
  base::TimePoint stand_again_at_{};  ///< not before, whatever wakes this broker
  std::int32_t epoch_min_ = -1;  ///< the highest that a broker has shown to a controller of ours
  std::function<std::int32_t()> known_epoch_;
  std::vector<std::function<void(Controller*)>> controller_listeners_;
  std::vector<std::function<void(const std::optional<ControllerAddress>&)>> leader_listeners_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // of callbacks that come later
  base::WaitList changed_;
  base::TaskGroup tasks_;
};

}  // namespace mq::controller
