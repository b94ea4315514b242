#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "broker/membership.h"
#include "data_client.h"
#include "protocol/replica_fetch.h"
#include "started_broker.h"

namespace mq::broker {

using model::BrokerEpoch;
using model::BrokerId;
using model::IsrMember;
using model::LeaderEpoch;
using model::Offset;
using model::PartitionId;
using protocol::ReplicaFetchRequest;
using protocol::ReplicaFetchResponse;
using protocol::WireError;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr IsrMember kFollower{BrokerId(2), BrokerEpoch(77)};

struct News {
  std::uint32_t correlation = 0;
  ReplicaFetchResponse response;
  std::vector<std::byte> payload;
};

/// A broker that leads, and a follower that the test plays.
struct ReplicaFetchTest : testing::StartedBroker {
  const Core& core() const { return world.broker->core(); }
  IsrMember leader() const { return {core().id, core().membership->epoch()}; }

  /// There is a second broker, by the image that this one has.
  void know_follower() {
    const auto image = core().image();
    metadata::ImageChange change;
    change.brokers = image->brokers();
    change.brokers->push_back({kFollower.broker, kFollower.epoch, {"follower", 1}, true});
    core().membership->view().publish(std::make_shared<metadata::ClusterImage>(
        image->with(std::move(change), image->version() + 1)));
    world.run_for(milliseconds(10));
  }
  /// This broker leads `id` in `epoch`, with the follower as second replica.
  void replicate(const PartitionId& id, std::vector<IsrMember> isr, std::int32_t epoch = 100) {
    Worker& worker = core().worker_of(id);
    auto before = worker.partitions().remove(id);
    before->close();
    testing::run(world.simulator, before->closed());
    before.reset();
    auto* log = core().disks->find(id);
    ASSERT_TRUE(log->start_epoch(LeaderEpoch(epoch)));
    replication::LeaderRole role;
    role.self = leader();
    role.replicas = {core().id, kFollower.broker};
    role.state = {core().id, LeaderEpoch(epoch), model::PartitionVersion(1), std::move(isr), 2};
    worker.partitions().add(std::make_shared<replication::Partition>(
        worker.runtime(), *log, world.counters, std::move(role)));
  }
  PartitionId replicated_topic(const std::string& name) {
    const PartitionId id{world.create_topic(name), 0};
    know_follower();
    replicate(id, {leader(), kFollower});
    return id;
  }

  static ReplicaFetchRequest request(std::uint32_t wait_ms = 500) {
    ReplicaFetchRequest request;
    request.broker = kFollower.broker.value();
    request.broker_epoch = kFollower.epoch.value();
    request.wait_ms = wait_ms;
    request.bytes_max = 4U << 20;
    return request;
  }
  static protocol::ReplicaSubscribe from(const PartitionId& id, std::int64_t end,
                                         std::uint32_t number = 1, std::int32_t last_epoch = 100) {
    return {id,        number,      LeaderEpoch(100), LeaderEpoch(end == 0 ? -1 : last_epoch),
            Offset(0), Offset(end), Offset(end)};
  }
  static protocol::ReplicaPosition has(const PartitionId& id, std::int64_t end,
                                       std::uint32_t number = 1) {
    return {id, number, Offset(end), Offset(end)};
  }
  static std::uint32_t send(testing::RawClient& follower, const ReplicaFetchRequest& request) {
    return follower.send(protocol::ApiKey::replica_fetch, protocol::encode(request));
  }
  static std::optional<News> receive(testing::RawClient& follower,
                                     base::Duration limit = seconds(1)) {
    auto answer = follower.receive(limit);
    if (!answer) return std::nullopt;
    auto response = protocol::decode_replica_fetch_response(answer->header_bytes());
    if (!response) throw std::runtime_error("an answer that does not parse");
    return News{answer->head.correlation_id, *std::move(response), std::move(answer->payload)};
  }
  News subscribe(testing::RawClient& follower, const protocol::ReplicaSubscribe& from) {
    auto ask = request();
    ask.subscribe = {from};
    send(follower, ask);
    auto news = receive(follower);
    if (!news || news->response.results.size() != 1)
      throw std::runtime_error("one result was expected");
    return *std::move(news);
  }
};

}  // namespace mq::broker
