#include "replication/image_puller.h"

#include <fmt/format.h>

#include "base/log.h"
#include "replication/image_delta.h"

namespace mq::replication {
namespace {

constexpr base::Duration kBackOffMin = std::chrono::milliseconds(50);
constexpr base::Duration kBackOffMax = std::chrono::seconds(1);
/// An election is no trouble worth a line.
constexpr base::Duration kToldAfter = std::chrono::seconds(5);
/// An answer that was under way for longer, both ways together, says nothing about time.
constexpr base::Duration kTravelMax = std::chrono::seconds(2);

}  // namespace

ImagePuller::ImagePuller(ImagePullerConfig config, ControllerLink& link, ClusterView& view,
                         base::Runtime& home)
    : config_(config), link_(link), view_(view), home_(home), changed_(home), tasks_(home) {}

void ImagePuller::start() { tasks_.spawn("image puller", run()); }

void ImagePuller::set_epoch(model::BrokerEpoch epoch) {
  epoch_ = epoch;
  try_now();
}

void ImagePuller::try_now() {
  hurry_ = true;
  back_off_ = {};  // whoever is asked from now on has not refused anything
  changed_.notify_all();
}

void ImagePuller::applied(std::uint64_t version) {
  applied_ = version;
  changed_.notify_all();
}

asio::awaitable<void> ImagePuller::stop() {
  stopping_ = true;
  changed_.notify_all();
  co_await tasks_.wait();
}

bool ImagePuller::may_pull() const {
  return epoch_ != model::BrokerEpoch() && applied_ == view_.version();
}

asio::awaitable<void> ImagePuller::run() {
  while (!stopping_) {
    if (!may_pull()) {
      co_await changed_.wait();
      continue;
    }
    hurry_ = false;
    const bool answered = co_await pull();
    if (answered) {
      back_off_ = {};
      trouble_.clear();
      if (std::exchange(trouble_told_, false))
        base::log_info("metadata", "cluster images come again");
    } else {
      co_await pause();
    }
  }
}

asio::awaitable<void> ImagePuller::pause() {
  back_off_ = std::clamp(2 * back_off_, kBackOffMin, kBackOffMax);
  const auto until = home_.now() + back_off_;
  while (!hurry_ && !stopping_ && home_.now() < until) co_await changed_.wait_until(until);
}

asio::awaitable<bool> ImagePuller::pull() {
  protocol::PullImageRequest request;
  request.envelope.deadline_ms = static_cast<std::uint32_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(config_.wait).count());
  request.broker = config_.broker.value();
  request.broker_epoch = epoch_.value();
  request.have_version = snapshot_wanted_ ? 0 : view_.version();
  request.wall_clock_ms = home_.wall_clock_ms();
  const auto epoch = epoch_;
  const auto sent = home_.now();
  const auto deadline = sent + config_.wait + config_.margin;
  const auto answer = co_await link_.pull(std::move(request), deadline);
  if (stopping_) co_return true;
  // What was told to an earlier registration may show leaderships that have ended with it.
  if (epoch != epoch_) co_return fail("this broker has been registered again");
  if (!answer) co_return fail(answer.error().message());
  if (!answer->envelope.status.ok()) co_return fail(answer->envelope.status.text);
  take_time(*answer, sent);
  co_return take(*answer);
}

/// The moment of the answer is taken to be half its way back.
void ImagePuller::take_time(const protocol::PullImageResponse& answer, base::TimePoint sent) {
  const auto travel = home_.now() - sent - std::chrono::milliseconds(answer.held_ms);
  if (!cluster_time_ || travel > kTravelMax) return;
  cluster_time_(answer.cluster_time, home_.now() - travel / 2);
}

bool ImagePuller::take(const protocol::PullImageResponse& answer) {
  if (answer.version == view_.version()) {
    snapshot_wanted_ = false;
    return true;
  }
  const bool changed = answer.topic_defaults != defaults_told_;
  const auto defaults = changed ? defaults_of(answer.topic_defaults) : defaults_;
  auto image = next_image(view_.image(), answer, defaults);
  if (!image) {
    snapshot_wanted_ = true;
    return fail(fmt::format("an answer of version {}, base {}, does not follow version {}",
                            answer.version, answer.base_version, view_.version()));
  }
  snapshot_wanted_ = false;
  if (changed || answer.controller != controller_) {
    controller_ = answer.controller;
    defaults_told_ = answer.topic_defaults;
    defaults_ = defaults;
    compare_defaults();
  }
  view_.publish(std::move(image));
  return true;
}

/// Here they matter once this broker is the controller.
void ImagePuller::compare_defaults() {
  std::vector<std::string> differences;
  for (const auto& name : model::topic_setting_names()) {
    const auto here = model::topic_setting_text(config_.topic_defaults, name);
    const auto there = model::topic_setting_text(defaults_, name);
    if (here != there) differences.push_back(fmt::format("{} is {}, not {}", name, there, here));
  }
  auto differing = differences.empty()
                       ? std::string()
                       : fmt::format(
                             "[topic.defaults] of the controller, broker {}, are in force, "
                             "and differ from those here: {}",
                             controller_, fmt::join(differences, ", "));
  if (differing == differing_) return;
  differing_ = std::move(differing);
  if (!differing_.empty()) base::log_warning("metadata", "{}", differing_);
}

bool ImagePuller::fail(std::string why) {
  if (trouble_.empty()) trouble_since_ = home_.now();
  trouble_ = std::move(why);
  if (!trouble_told_ && home_.now() - trouble_since_ >= kToldAfter) {
    trouble_told_ = true;
    base::log_warning("metadata", "no newer cluster image since {} s: {}",
                      std::chrono::duration_cast<std::chrono::seconds>(kToldAfter).count(),
                      trouble_);
  }
  return false;
}

std::string ImagePuller::complaint() const {
  if (!trouble_told_ || trouble_.empty()) return {};
  return fmt::format(
      "no newer cluster image for {} s: {}",
      std::chrono::duration_cast<std::chrono::seconds>(home_.now() - trouble_since_).count(),
      trouble_);
}

}  // namespace mq::replication
