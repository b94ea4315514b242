#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "unit/controller/cluster_fixture.h"

namespace mq::controller {

using metadata::StoreFault;
using model::BrokerEpoch;
using model::BrokerId;
using model::IsrMember;
using protocol::PartitionAction;
using protocol::ReplicaState;
using protocol::WireError;

/// Three brokers and a topic, each partition of which has a copy on all of them.
class ClusterReplicas : public mq::testing::Cluster {
 protected:
  void start_with_topic(std::int32_t partitions = 1, std::int32_t min_isr = -1) {
    start(3);
    ASSERT_TRUE(create_replicated("orders", partitions, 3, min_isr).status.ok());
    wait_until_settled();
  }
  metadata::PartitionAssignment partition(std::int32_t number = 0) {
    return *topic("orders")->find(number);
  }
  [[nodiscard]] IsrMember registered(int id) { return {BrokerId(id), broker(id).member.epoch()}; }
  /// Of the replicas, in their order; the first leads at first.
  int replica(std::size_t at, std::int32_t number = 0) {
    return partition(number).replicas[at].value();
  }
  std::vector<int> isr(std::int32_t number = 0) {
    std::vector<int> ids;
    for (const auto& member : partition(number).isr) ids.push_back(member.broker.value());
    return ids;
  }
  std::vector<int> elr(std::int32_t number = 0) {
    std::vector<int> ids;
    for (const auto& member : partition(number).elr) ids.push_back(member.broker.value());
    return ids;
  }
  /// As its leader would ask.
  protocol::AlterIsrRequest proposal(std::vector<IsrMember> isr, std::int32_t number = 0) {
    const auto now = partition(number);
    protocol::AlterIsrRequest request;
    request.broker = now.leader.value();
    request.broker_epoch = broker(now.leader.value()).member.epoch().value();
    request.entries.push_back({now.id, now.leader_epoch, now.version, std::move(isr)});
    return request;
  }
  protocol::AlterIsrResponse ask(protocol::AlterIsrRequest request) {
    return run(wait_for_controller().alter_isr(std::move(request), in(std::chrono::seconds(5))));
  }
  protocol::LeaveBrokerResponse leave_and_hear(int id, std::int64_t epoch) {
    protocol::LeaveBrokerRequest request;
    request.broker = id;
    request.broker_epoch = epoch;
    return run(wait_for_controller().leave(request, in(std::chrono::seconds(5))));
  }
  WireError leave(int id, std::int64_t epoch) {
    return leave_and_hear(id, epoch).envelope.status.error();
  }
  /// What a broker says of its replica as it is now; `state` and whatever else is for the test.
  protocol::ReplicaReport report_of(protocol::ReplicaState state) {
    protocol::ReplicaReport report;
    report.partition = partition().id;
    report.state = state;
    report.last_leader_epoch = partition().leader_epoch;
    report.log_end_offset = model::Offset(0);
    return report;
  }
  /// True: the controller has taken it.
  bool tell(int id, protocol::ReplicaReport report) {
    protocol::ReportReplicasRequest request;
    request.broker = id;
    request.broker_epoch = broker(id).member.epoch().value();
    request.replicas.push_back(std::move(report));
    auto& controller = wait_for_controller();
    return run(controller.report(request, in(std::chrono::seconds(5)))).envelope.status.ok();
  }
  protocol::ControlResult control(protocol::PartitionAction action, int id) {
    protocol::ControlPartitionsRequest wanted;
    wanted.action = action;
    wanted.broker = id;
    wanted.partitions = {partition().id};
    return run(wait_for_controller().control(wanted, in(std::chrono::seconds(5)))).results[0];
  }
  protocol::TopicResult alter(const std::string& name, const std::string& setting,
                              const std::string& value) {
    protocol::AlterTopic change;
    change.name = name;
    if (value.empty())
      change.unset = {setting};
    else
      change.set = {{setting, value}};
    return run(wait_for_controller().alter_topic(change, in(std::chrono::seconds(20))));
  }
  protocol::TopicResult set_min_isr(const std::string& value) {
    return alter("orders", "min_isr", value);
  }
  bool add_partitions_up_to(std::int32_t total) {
    return run(wait_for_controller().add_partitions("orders", total, in(std::chrono::seconds(20))))
        .status.ok();
  }
  /// Dies, and its session ends.
  void lose(int id) {
    broker(id).kill();
    simulator_.run_for(kSessionTime + std::chrono::seconds(2));
    (void)wait_for_controller();
    simulator_.run_for(std::chrono::seconds(1));
  }
};

}  // namespace mq::controller
