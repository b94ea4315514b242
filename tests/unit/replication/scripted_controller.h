#pragma once

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "base/wait_list.h"
#include "replication/controller_link.h"

namespace mq::replication::testing {

inline base::Uuid uuid(std::uint64_t n) { return base::Uuid::from_random(n, n); }
inline std::uint64_t version(std::uint64_t controller_epoch, std::uint64_t change) {
  return (controller_epoch << 32) | change;
}
inline protocol::ImagePartition partition(std::int32_t number, std::int32_t leader,
                                          std::int32_t leader_epoch, std::int32_t version) {
  const model::IsrMember one{model::BrokerId(1), model::BrokerEpoch(4)};
  return {number, leader, leader_epoch, version, {1}, {one}, {}, 1};
}
inline protocol::ImageTopic image_topic(const std::string& name, std::uint64_t id,
                                        std::vector<protocol::ImagePartition> partitions) {
  protocol::ImageTopic topic;
  topic.name = name;
  topic.id = uuid(id);
  topic.partitions = std::move(partitions);
  return topic;
}

/// A controller that answers as the test says, or not at all.
class ScriptedController final : public ControllerLink {
 public:
  explicit ScriptedController(base::Runtime& runtime) : runtime_(runtime), woken_(runtime) {}

  /// Given the request; no value: no answer before the deadline, or before wake().
  std::function<base::Result<protocol::PullImageResponse>(const protocol::PullImageRequest&)>
      on_pull;
  std::function<base::Result<protocol::ReportReplicasResponse>(
      const protocol::ReportReplicasRequest&)>
      on_report;
  std::function<base::Result<protocol::AlterIsrResponse>(const protocol::AlterIsrRequest&)>
      on_alter_isr;
  std::vector<protocol::PullImageRequest> pulls;
  std::vector<protocol::ReportReplicasRequest> reports;
  std::vector<protocol::AlterIsrRequest> isr_requests;

  asio::awaitable<base::Result<protocol::PullImageResponse>> pull(
      protocol::PullImageRequest request, base::TimePoint /*deadline*/) override {
    pulls.push_back(request);
    const auto until = runtime_.now() + std::chrono::milliseconds(request.envelope.deadline_ms);
    auto answer = on_pull(request);
    while (answer && answer->version == request.have_version && runtime_.now() < until) {
      const bool woken = co_await woken_.wait_until(until);
      if (woken) answer = on_pull(request);
    }
    co_return answer;
  }
  asio::awaitable<base::Result<protocol::ReportReplicasResponse>> report(
      protocol::ReportReplicasRequest request, base::TimePoint /*deadline*/) override {
    reports.push_back(request);
    co_await runtime_.sleep_for(std::chrono::milliseconds(1));
    co_return on_report(request);
  }
  asio::awaitable<base::Result<protocol::AlterIsrResponse>> alter_isr(
      protocol::AlterIsrRequest request, base::TimePoint /*deadline*/) override {
    isr_requests.push_back(request);
    co_await runtime_.sleep_for(std::chrono::milliseconds(1));
    co_return on_alter_isr(request);
  }
  asio::awaitable<base::Result<protocol::LeaveBrokerResponse>> leave(
      protocol::LeaveBrokerRequest /*request*/, base::TimePoint /*deadline*/) override {
    co_return protocol::LeaveBrokerResponse{};
  }
  /// Long polls look again.
  void wake() { woken_.notify_all(); }

 private:
  base::Runtime& runtime_;
  base::WaitList woken_;
};

}  // namespace mq::replication::testing
