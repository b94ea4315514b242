#include "broker/membership.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "broker/hop.h"
#include "broker/version.h"
#include "replication/image_delta.h"

namespace mq::broker {
namespace {

using base::Result;

constexpr base::Duration kWaitToldAgain = std::chrono::seconds(1);
constexpr base::Duration kHandOverAgain = std::chrono::milliseconds(300);
constexpr std::size_t kLedNamed = 10;

replication::RemoteControllerOptions remote_options(const Core& core) {
  replication::RemoteControllerOptions options;
  options.name = fmt::format("broker {}", core.id);
  options.version = std::string(kVersion);
  options.cluster_id = core.cluster_id;
  return options;
}

replication::ImagePullerConfig puller_config(const Core& core) {
  replication::ImagePullerConfig config;
  config.broker = core.id;
  config.topic_defaults = core.topic_defaults;
  return config;
}

/// Why the controller is to be asked again; empty: it is not.
std::string why_not_handed_over(const Result<protocol::LeaveBrokerResponse>& answer) {
  if (!answer) return answer.error().message();
  if (!answer->envelope.status.ok()) return answer->envelope.status.text;
  return answer->waiting.empty() ? std::string() : "no other copy in sync of " + answer->waiting;
}

/// What this broker leads although others have copies of it.
std::string led_here(const metadata::ClusterImage& image, model::BrokerId self) {
  std::vector<std::string> names;
  std::size_t more = 0;
  for (const auto& [name, topic] : image.topics()) {
    for (const auto& one : topic->partitions) {
      if (one.leader != self || one.replicas.size() < 2) continue;
      if (names.size() < kLedNamed)
        names.push_back(fmt::format("{}-{}", name, one.id.partition));
      else
        ++more;
    }
  }
  return names.empty() ? std::string()
                       : fmt::format("{}{}", fmt::join(names, ", "),
                                     more == 0 ? "" : fmt::format(" and {} more", more));
}

using LeaveAnswer = std::shared_ptr<std::optional<protocol::LeaveBrokerResponse>>;

/// `controller` does not end before its calls have.
asio::awaitable<void> leave_here(controller::Controller& controller,
                                 protocol::LeaveBrokerRequest request, base::TimePoint deadline,
                                 LeaveAnswer answer) {
  *answer = co_await controller.leave(std::move(request), deadline);
}

protocol::Status no_controller() {
  return protocol::Status::of(protocol::WireError::not_controller,
                              "no broker is known to be the controller");
}

}  // namespace

template <class Response, class Request>
asio::awaitable<Result<Response>> ControllerRoute::call(
    asio::awaitable<Response> (controller::Controller::*here)(Request, base::TimePoint),
    asio::awaitable<Result<Response>> (replication::RemoteController::*there)(Request,
                                                                              base::TimePoint),
    Request request, base::TimePoint deadline) {
  if (!local_ && !remote_.has_address()) {
    Response refused;
    refused.envelope.status = no_controller();
    co_return refused;
  }
  if (!local_) co_return co_await (remote_.*there)(std::move(request), deadline);
  co_return co_await (local_->*here)(std::move(request), deadline);
}

asio::awaitable<Result<protocol::PullImageResponse>> ControllerRoute::pull(
    protocol::PullImageRequest request, base::TimePoint deadline) {
  // Its long poll ends earlier; `deadline` is for one that fell silent.
  const auto wait = std::chrono::milliseconds(request.envelope.deadline_ms);
  if (local_) deadline = std::min(deadline, home_.now() + wait);
  return call(&controller::Controller::pull, &replication::RemoteController::pull,
              std::move(request), deadline);
}

asio::awaitable<Result<protocol::ReportReplicasResponse>> ControllerRoute::report(
    protocol::ReportReplicasRequest request, base::TimePoint deadline) {
  return call(&controller::Controller::report, &replication::RemoteController::report,
              std::move(request), deadline);
}

asio::awaitable<Result<protocol::AlterIsrResponse>> ControllerRoute::alter_isr(
    protocol::AlterIsrRequest request, base::TimePoint deadline) {
  return call(&controller::Controller::alter_isr, &replication::RemoteController::alter_isr,
              std::move(request), deadline);
}

asio::awaitable<Result<protocol::LeaveBrokerResponse>> ControllerRoute::leave(
    protocol::LeaveBrokerRequest request, base::TimePoint deadline) {
  if (!local_) {
    co_return co_await call(&controller::Controller::leave, &replication::RemoteController::leave,
                            std::move(request), deadline);
  }
  // A controller in this process waits for the metadata store for as long as that takes.
  LeaveAnswer answer = std::make_shared<std::optional<protocol::LeaveBrokerResponse>>();
  const bool ended =
      co_await ends_by(home_, deadline, leave_here(*local_, std::move(request), deadline, answer));
  if (!ended) co_return make_error_code(base::BaseErrc::timed_out);
  co_return std::move(**answer);
}

Membership::Membership(MembershipConfig config, Core& core, metadata::MetadataStore& store,
                       base::Network& network)
    : core_(core),
      store_(store),
      clock_watch_(core.id, core.clock, *core.home),
      view_(*core.home),
      remote_(remote_options(core), *core.home, network),
      route_(*core.home, remote_),
      puller_(puller_config(core), route_, view_, *core.home),
      reporter_(core.id, route_, *core.home),
      member_(std::move(config.member), store, *core.home),
      candidate_(std::move(config.controller), store, member_, *core.home),
      producer_ids_(store, *core.home, store.session_timeout() > base::Duration()) {}

Membership::~Membership() = default;

asio::awaitable<Result<void>> Membership::start(std::function<void(const std::string&)> waiting) {
  waiting_ = std::move(waiting);
  member_.on_waiting([this](const std::string& text) { waiting_(text); });
  member_.on_epoch([this](model::BrokerEpoch epoch) { adopt_epoch(epoch); });
  candidate_.on_controller([this](controller::Controller* local) {
    route_.set_local(local);
    try_now();
  });
  candidate_.on_known_epoch([this] {
    return static_cast<std::int32_t>(replication::controller_epoch_of(view_.version())) - 1;
  });
  puller_.on_cluster_time([this](const protocol::ClusterTime& time, base::TimePoint at) {
    clock_watch_.note(time, at);
  });
  remote_.on_lost([this] { candidate_.lost_controller(); });
  candidate_.on_leader([this](const auto& leader) { adopt_leader(leader); });
  MQ_CO_TRY_VOID(co_await member_.start());
  adopt_epoch(member_.epoch());
  candidate_.start();
  puller_.start();
  reporter_.start();
  producer_ids_.start();
  co_return Result<void>{};
}

void Membership::adopt_epoch(model::BrokerEpoch epoch) {
  core_.broker_epoch = epoch.value();
  if (core_.disks) core_.disks->set_broker_epoch(epoch.value());
  puller_.set_epoch(epoch);
  reporter_.set_epoch(epoch);
}

void Membership::adopt_leader(const std::optional<controller::ControllerAddress>& leader) {
  const bool elsewhere = leader && leader->broker != core_.id;
  remote_.set_address(elsewhere ? std::optional(leader->advertised) : std::nullopt);
  try_now();
}

void Membership::try_now() {
  puller_.try_now();
  reporter_.try_now();
}

/// Partitions that are new since this broker began to wait: whoever has them made waits until they
/// are open here, and hears at once that they will not be for now.
void Membership::refuse_to_open(const metadata::ClusterImage& image, StartWait& wait) {
  const bool begins = !std::exchange(wait.begun, true);
  for (const auto& [name, topic] : image.topics()) {
    for (const auto& assignment : topic->partitions) {
      if (std::ranges::find(assignment.replicas, core_.id) == assignment.replicas.end()) continue;
      if (begins) wait.there_before.insert(assignment.id);
      if (begins || wait.there_before.contains(assignment.id)) continue;
      if (!wait.refused.insert(assignment.id).second) continue;
      reporter_.failed(assignment.id,
                       core_.status(protocol::WireError::partition_offline,
                                    fmt::format("broker {} waits at its start: {}", core_.id,
                                                image.lost_topic()->text)));
    }
  }
}

asio::awaitable<metadata::ImagePtr> Membership::first_image() {
  auto image = view_.image();
  StartWait wait;
  while ((!image || image->lost_topic()) && !core_.stopping) {
    if (image) {
      // Its logs would be taken for those of nobody and put away. Nothing is served yet, so that
      // the image is in force as it is.
      puller_.applied(image->version());
      refuse_to_open(*image, wait);
      waiting_("waiting for a topic of the metadata: " + image->lost_topic()->text);
      image = co_await view_.wait_for_image(image->version(), core_.home->now() + kWaitToldAgain);
      continue;
    }
    const auto& leader = candidate_.leader();
    waiting_(leader ? fmt::format("waiting for the cluster image from broker {} ({})",
                                  leader->broker, leader->advertised.text())
                    : std::string("waiting for a controller to be elected"));
    image = co_await view_.wait_for_image(0, core_.home->now() + kWaitToldAgain);
  }
  for (const auto& id : wait.refused) reporter_.forget(id);
  co_return image;
}

protocol::Status Membership::not_controller() const {
  const auto& leader = candidate_.leader();
  if (!candidate_.trouble().empty())
    return core_.status(protocol::WireError::metadata_unavailable, candidate_.trouble());
  if (const auto why = store_.trouble(); !why.empty())
    return core_.status(protocol::WireError::metadata_unavailable, why);
  if (!leader || leader->broker == core_.id) {
    return core_.status(protocol::WireError::not_controller,
                        "no broker is the controller just now");
  }
  return core_.status(
      protocol::WireError::not_controller,
      fmt::format("the controller is broker {} ({})", leader->broker, leader->advertised.text()));
}

std::string Membership::trouble() const {
  if (auto why = store_.trouble(); !why.empty()) return why;
  if (!candidate_.trouble().empty()) return candidate_.trouble();
  return candidate_.leader() ? std::string() : std::string("no broker is the controller");
}

asio::awaitable<std::optional<std::uint64_t>> Membership::hand_over(base::TimePoint deadline) {
  std::string told;
  std::optional<std::uint64_t> version;
  std::string left;
  const auto began = core_.home->now();
  while (core_.home->now() < deadline) {
    protocol::LeaveBrokerRequest request;
    request.envelope.deadline_ms = static_cast<std::uint32_t>(
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - core_.home->now())
            .count());
    request.broker = core_.id.value();
    request.broker_epoch = member_.epoch().value();
    const auto answer = co_await route_.leave(std::move(request), deadline);
    const auto why = why_not_handed_over(answer);
    if (answer && answer->envelope.status.ok()) {
      version = answer->envelope.metadata_version;
      left = answer->waiting;
      if (!answer->only_here.empty()) left += (left.empty() ? "" : ", ") + answer->only_here;
    }
    if (!why.empty() && std::exchange(told, why) != why)
      base::log_info("broker", "the partitions are not handed over yet: {}", why);
    if (why.empty() ||
        (answer && !answer->envelope.status.ok() && !answer->envelope.status.advice.retriable))
      break;
    co_await core_.home->sleep_until(std::min(deadline, core_.home->now() + kHandOverAgain));
  }
  if (const auto still = version ? std::string() : led_here(*core_.image(), core_.id);
      !still.empty()) {
    base::log_warning(
        "broker",
        "what this broker leads was not handed over within {} s ({}): {}; clients wait until "
        "the others notice that it is gone",
        std::chrono::duration_cast<std::chrono::seconds>(core_.home->now() - began).count(), told,
        still);
  }
  if (!left.empty()) {
    base::log_warning(
        "broker",
        "this broker stops as the only one with a copy in sync of {}: until it is back "
        "nobody serves them, and nothing of them is lost",
        left);
  }
  co_return version;
}

void Membership::give_up() {
  view_.stop();
  reporter_.give_up();
}

asio::awaitable<void> Membership::stop_following() {
  remote_.set_address(std::nullopt);
  give_up();
  co_await candidate_.stop();
  co_await puller_.stop();
  co_await reporter_.stop();
  co_await producer_ids_.stop();
}

asio::awaitable<void> Membership::leave() { co_await member_.stop(); }

}  // namespace mq::broker
