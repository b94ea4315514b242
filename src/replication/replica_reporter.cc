#include "replication/replica_reporter.h"

#include <algorithm>

#include "base/log.h"
#include "replication/image_delta.h"

namespace mq::replication {
namespace {

constexpr base::Duration kBackOffMin = std::chrono::milliseconds(50);
constexpr base::Duration kBackOffMax = std::chrono::seconds(1);
/// The controller writes what follows from a report before it answers.
constexpr base::Duration kAnswerTime = std::chrono::seconds(15);

}  // namespace

ReplicaReporter::ReplicaReporter(model::BrokerId broker, ControllerLink& link, base::Runtime& home)
    : broker_(broker), link_(link), home_(home), changed_(home), tasks_(home) {}

void ReplicaReporter::start() { tasks_.spawn("replica reporter", run()); }

void ReplicaReporter::set_epoch(model::BrokerEpoch epoch) {
  epoch_ = epoch;
  report_all_again();
}

void ReplicaReporter::note_image(std::uint64_t version) {
  const auto epoch = controller_epoch_of(version);
  if (epoch == controller_epoch_) return;
  controller_epoch_ = epoch;
  report_all_again();
}

void ReplicaReporter::report_all_again() {
  for (const auto& [id, report] : replicas_) due_.insert(id);
  deleted_due_ = deleted_;
  try_now();
}

void ReplicaReporter::try_now() {
  hurry_ = true;
  changed_.notify_all();
}

void ReplicaReporter::opened(const model::PartitionId& id, model::LeaderEpoch last,
                             model::Offset log_end_offset, model::Offset high_watermark,
                             model::BrokerEpoch intact_since) {
  protocol::ReplicaReport one;
  one.partition = id;
  one.last_leader_epoch = last;
  one.log_end_offset = log_end_offset;
  one.high_watermark = high_watermark;
  one.intact_since = intact_since;
  report(std::move(one));
}

void ReplicaReporter::failed(const model::PartitionId& id, protocol::Status reason,
                             model::LeaderEpoch heard_of_in) {
  protocol::ReplicaReport one;
  one.partition = id;
  one.state = protocol::ReplicaState::failed;
  one.last_leader_epoch = heard_of_in;
  one.reason = std::move(reason);
  report(std::move(one));
}

void ReplicaReporter::damaged(const model::PartitionId& id, std::vector<model::DamagedPlace> places,
                              protocol::Status which) {
  if (places.size() > protocol::kDamagedPlacesMax) places.resize(protocol::kDamagedPlacesMax);
  const auto found = replicas_.find(id);
  if (found == replicas_.end() || found->second.state == protocol::ReplicaState::failed) return;
  auto& known = found->second;
  if (known.damage == places) return;
  known.damage = std::move(places);
  known.reason = known.damage.empty() ? protocol::Status() : std::move(which);
  due_.insert(id);
  changed_.notify_all();
}

void ReplicaReporter::ask(const model::PartitionId& id, protocol::ReplicaState state) {
  if (!replicas_.contains(id)) return;
  asks_[id] = state;
  due_.insert(id);
  changed_.notify_all();
}

void ReplicaReporter::report(protocol::ReplicaReport report) {
  const auto id = report.partition;
  replicas_[id] = std::move(report);
  due_.insert(id);
  changed_.notify_all();
}

void ReplicaReporter::leads(const model::PartitionId& id, model::LeaderEpoch epoch) {
  const auto found = replicas_.find(id);
  if (found != replicas_.end()) found->second.last_leader_epoch = epoch;
}

void ReplicaReporter::forget(const model::PartitionId& id) {
  replicas_.erase(id);
  due_.erase(id);
  asks_.erase(id);
}

void ReplicaReporter::deleted(const base::Uuid& topic) {
  deleted_.insert(topic);
  deleted_due_.insert(topic);
  changed_.notify_all();
}

void ReplicaReporter::forget_deleted(const base::Uuid& topic) {
  deleted_.erase(topic);
  deleted_due_.erase(topic);
}

const protocol::ReplicaReport* ReplicaReporter::last_report(const model::PartitionId& id) const {
  const auto found = replicas_.find(id);
  return found == replicas_.end() ? nullptr : &found->second;
}

std::size_t ReplicaReporter::left() const noexcept {
  return due_.size() + deleted_due_.size() + under_way_;
}

asio::awaitable<bool> ReplicaReporter::all_taken(base::TimePoint deadline) {
  while (left() > 0 && !stopping_ && home_.now() < deadline) co_await changed_.wait_until(deadline);
  co_return left() == 0;
}

void ReplicaReporter::give_up() {
  stopping_ = true;
  changed_.notify_all();
}

asio::awaitable<void> ReplicaReporter::stop() {
  give_up();
  co_await tasks_.wait();
}

asio::awaitable<void> ReplicaReporter::run() {
  while (!stopping_) {
    if (left() == 0 || epoch_ == model::BrokerEpoch()) {
      co_await changed_.wait();
      continue;
    }
    hurry_ = false;
    const bool taken = co_await report_some();
    if (taken) {
      back_off_ = {};
      trouble_.clear();
      changed_.notify_all();
    } else {
      co_await pause();
    }
  }
}

asio::awaitable<void> ReplicaReporter::pause() {
  back_off_ = std::clamp(2 * back_off_, kBackOffMin, kBackOffMax);
  const auto until = home_.now() + back_off_;
  while (!hurry_ && !stopping_ && home_.now() < until) co_await changed_.wait_until(until);
}

protocol::ReportReplicasRequest ReplicaReporter::next_request() {
  protocol::ReportReplicasRequest request;
  request.envelope.deadline_ms = static_cast<std::uint32_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(kAnswerTime).count());
  request.broker = broker_.value();
  request.broker_epoch = epoch_.value();
  while (!due_.empty() && request.replicas.size() < protocol::kReportsMax) {
    const auto id = due_.extract(due_.begin()).value();
    request.replicas.push_back(replicas_.at(id));
    if (const auto ask = asks_.extract(id)) request.replicas.back().state = ask.mapped();
  }
  while (!deleted_due_.empty() && request.deleted.size() < protocol::kReportsMax)
    request.deleted.push_back(deleted_due_.extract(deleted_due_.begin()).value());
  return request;
}

/// What has been forgotten meanwhile is not reported any more.
void ReplicaReporter::give_back(const protocol::ReportReplicasRequest& request) {
  for (const auto& one : request.replicas) {
    if (!replicas_.contains(one.partition)) continue;
    due_.insert(one.partition);
    const bool asked = one.state == protocol::ReplicaState::resigns ||
                       one.state == protocol::ReplicaState::needs_epoch;
    if (asked) asks_.emplace(one.partition, one.state);
  }
  for (const auto& topic : request.deleted) {
    if (deleted_.contains(topic)) deleted_due_.insert(topic);
  }
}

asio::awaitable<bool> ReplicaReporter::report_some() {
  auto request = next_request();
  const auto sent = request;
  under_way_ = sent.replicas.size() + sent.deleted.size();
  const auto answer = co_await link_.report(std::move(request), home_.now() + kAnswerTime);
  under_way_ = 0;
  if (answer && answer->envelope.status.ok()) {
    taken_version_ = std::max(taken_version_, answer->envelope.metadata_version);
    co_return true;
  }
  give_back(sent);
  auto why = answer ? answer->envelope.status.text : answer.error().message();
  trouble_ = std::move(why);
  co_return false;
}

}  // namespace mq::replication
