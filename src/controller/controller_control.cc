#include <algorithm>
#include <set>

#include "base/log.h"
#include "controller/controller_impl.h"
#include "controller/elections.h"
#include "controller/error.h"

// What operators want of single partitions.
namespace mq::controller {
namespace {

constexpr base::Duration kChosenByHand = std::chrono::hours(1);

}  // namespace

asio::awaitable<protocol::ControlPartitionsResponse> Controller::Impl::control(
    protocol::ControlPartitionsRequest request) {
  const Call call(*this);
  protocol::ControlPartitionsResponse response;
  response.envelope.status = resigned() ? gone() : Status();
  if (!response.envelope.status.ok()) co_return response;
  const auto turn = co_await writes_.wait_for_turn();
  if (resigned()) response.envelope.status = gone();
  if (doubtful_) response.envelope.status = refusal(MetadataErrc::unavailable);
  if (!response.envelope.status.ok()) co_return response;
  std::vector<StateChange> changes;
  std::vector<std::size_t> changed;  // their entries
  std::set<model::PartitionId> seen;
  for (const auto& partition : request.partitions) {
    auto& result = response.results.emplace_back();
    result.partition = partition;
    if (!seen.insert(partition).second) continue;
    auto change = change_after(request, partition, result.status);
    if (!change) continue;
    changes.push_back(std::move(*change));
    changed.push_back(response.results.size() - 1);
  }
  auto outcomes = co_await write_each(std::move(changes));
  for (std::size_t i = 0; i < changed.size(); ++i) {
    auto& result = response.results[changed[i]];
    result.status = std::move(outcomes[i]);
    result.changed = result.status.ok();
  }
  for (auto& result : response.results) {
    const auto* const node = find_partition(result.partition);
    if (node != nullptr) result.leader = node->state.leader.value();
  }
  response.envelope.metadata_version = image()->version();
  response.envelope.status.broker = config_.broker.value();
  co_return response;
}

/// Nothing: there is nothing to write, or `refused` says why not.
std::optional<StateChange> Controller::Impl::change_after(
    const protocol::ControlPartitionsRequest& request, const model::PartitionId& partition,
    Status& refused) {
  const auto* const node = find_partition(partition);
  if (node == nullptr) {
    refused = status(WireError::unknown_topic_id, "there is no such partition");
    return std::nullopt;
  }
  auto state = node->state;
  if (request.action == protocol::PartitionAction::acknowledge_loss) {
    // It is the mark by which its leader puts away what is damaged.
    if (state.loss_epoch != model::LeaderEpoch() && state.loss_epoch == state.leader_epoch &&
        state.loss_start.value() < 0) {
      refused = status(WireError::invalid_request,
                       fmt::format("broker {} has not said yet from where on records may be lost",
                                   state.leader));
      return std::nullopt;
    }
    state.loss_epoch = model::LeaderEpoch();
    state.loss_start = {};
    state.loss_end = {};
    if (node->state.loss_epoch == state.loss_epoch) return std::nullopt;
    return StateChange{node->id, std::move(state), node->version};
  }
  const model::BrokerId wanted(request.broker);
  const bool check = request.action == protocol::PartitionAction::check_loss;
  if (check || request.action == protocol::PartitionAction::elect_with_loss) {
    const auto* const registered = members_.find(wanted);
    const model::IsrMember chosen{wanted, registered ? registered->epoch : model::BrokerEpoch()};
    auto elected = with_leader_despite_loss(state, replicas_of(partition), members_.live_brokers(),
                                            chosen, damaged_of(partition));
    if (auto why = useless_because(partition, wanted); !why.empty())
      elected = {{}, fmt::format("broker {} cannot use its log: {}", wanted, why)};
    if (!elected.state) {
      refused = status(WireError::invalid_request, std::move(elected.refusal));
      return std::nullopt;
    }
    if (check) return std::nullopt;
    base::log_warning("controller",
                      "{}: an operator has broker {} lead in epoch {} with what it has; what it "
                      "lacks is lost",
                      partition.text(), wanted, elected.state->leader_epoch);
    return StateChange{node->id, std::move(*elected.state), node->version};
  }
  auto elected = with_leader(state, replicas_of(partition), members_.live_brokers(), wanted);
  if (!elected) {
    refused = status(
        WireError::invalid_request,
        wanted == model::BrokerId()
            ? std::string("none of its replicas is alive and in sync")
            : fmt::format("broker {} has no copy of it that is in sync, or is away", wanted));
    return std::nullopt;
  }
  // Who wants another leader than the first replica gets it for a while.
  if (wanted != model::BrokerId() && wanted != replicas_of(partition).front())
    balance_.hold(partition, home_.now() + kChosenByHand);
  if (elected->leader_epoch == state.leader_epoch) return std::nullopt;
  return StateChange{node->id, std::move(*elected), node->version};
}

}  // namespace mq::controller
