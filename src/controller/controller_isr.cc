#include <algorithm>
#include <set>

#include "base/log.h"
#include "controller/controller_impl.h"
#include "controller/elections.h"
#include "controller/error.h"

// Leaders ask for other ISRs, and brokers that stop for other leaders.
namespace mq::controller {
namespace {

protocol::IsrState to_message(const PartitionNode& node) {
  protocol::IsrState state;
  state.leader = node.state.leader;
  state.leader_epoch = node.state.leader_epoch;
  state.version = model::PartitionVersion(node.version);
  state.isr = node.state.isr;
  state.min_isr = node.state.min_isr;
  return state;
}

/// The first of them, and how many more there are.
std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kNamed = 5;
  const auto named = std::min(names.size(), kNamed);
  auto text = fmt::format(
      "{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(named), ", "));
  if (named < names.size()) text += fmt::format(" and {} more", names.size() - named);
  return text;
}

}  // namespace

asio::awaitable<protocol::AlterIsrResponse> Controller::Impl::alter_isr(
    protocol::AlterIsrRequest request) {
  const Call call(*this);
  protocol::AlterIsrResponse response;
  const model::IsrMember leader{model::BrokerId(request.broker),
                                model::BrokerEpoch(request.broker_epoch)};
  const auto turn = co_await writes_for(leader.broker, leader.epoch, response.envelope);
  if (!response.envelope.status.ok()) co_return response;
  std::vector<StateChange> changes;
  std::vector<std::size_t> changed;  // their entries
  std::set<model::PartitionId> named;
  for (std::size_t i = 0; i < request.entries.size(); ++i) {
    const auto& entry = request.entries[i];
    auto& result = response.results.emplace_back();
    result.partition = entry.partition;
    if (named.contains(entry.partition)) {
      result.status = status(WireError::invalid_request, "the partition is named twice");
      continue;
    }
    auto change = change_after(leader, entry, result.status);
    if (!change) continue;
    named.insert(entry.partition);
    changes.push_back(std::move(*change));
    changed.push_back(i);
  }
  auto outcomes = co_await write_each(std::move(changes));
  for (std::size_t i = 0; i < changed.size(); ++i)
    response.results[changed[i]].status = std::move(outcomes[i]);
  for (auto& result : response.results) {
    if (const auto* const node = find_partition(result.partition)) result.state = to_message(*node);
  }
  response.envelope.metadata_version = image()->version();
  response.envelope.status.broker = config_.broker.value();
  co_return response;
}

/// Of the ISR that its leader asks for; nothing: `refused` says why not.
std::optional<StateChange> Controller::Impl::change_after(const model::IsrMember& leader,
                                                          const protocol::IsrProposal& proposal,
                                                          Status& refused) const {
  const auto* const node = find_partition(proposal.partition);
  if (node == nullptr) {
    refused = status(WireError::unknown_topic_id, "there is no such partition");
    return std::nullopt;
  }
  const auto no =
      check_proposal(node->state, model::PartitionVersion(node->version),
                     replicas_of(proposal.partition), members_.live_brokers(), leader, proposal);
  if (no) {
    refused = status(no->error, no->text);
    return std::nullopt;
  }
  auto added = added_members(node->state.isr, proposal.isr);
  if (const auto failed = failed_of(proposal.partition, added)) {
    refused = status(WireError::invalid_request,
                     fmt::format("broker {} has said that its replica failed", failed->broker));
    return std::nullopt;
  }
  return StateChange{node->id, with_isr(node->state, proposal.isr), node->version,
                     std::move(added)};
}

asio::awaitable<protocol::LeaveBrokerResponse> Controller::Impl::leave(
    protocol::LeaveBrokerRequest request) {
  const Call call(*this);
  protocol::LeaveBrokerResponse response;
  const model::BrokerId broker(request.broker);
  const model::BrokerEpoch epoch(request.broker_epoch);
  const auto turn = co_await writes_for(broker, epoch, response.envelope);
  if (!response.envelope.status.ok()) co_return response;
  members_.leaving(broker);
  const auto written = co_await write_states(due_changes());
  if (!written) {
    response.envelope.status = refusal(written.error());
    co_return response;
  }
  const bool all_handed_over = name_what_it_still_leads(broker, response);
  base::log_info("controller", "broker {} is about to stop: {}", broker,
                 all_handed_over             ? std::string("what it led is led elsewhere")
                 : !response.waiting.empty() ? "waiting for another copy of " + response.waiting
                                             : "nobody else can lead " + response.only_here);
  response.envelope.metadata_version = image()->version();
  response.envelope.status.broker = config_.broker.value();
  co_return response;
}

/// True: nothing that has other replicas.
bool Controller::Impl::name_what_it_still_leads(model::BrokerId broker,
                                                protocol::LeaveBrokerResponse& response) const {
  std::vector<std::string> waiting;
  std::vector<std::string> only_here;
  for (const auto& [id, tree] : topics_) {
    for (std::size_t i = 0; i < tree.partitions.size(); ++i) {
      const auto& replicas = tree.value.partitions[i].replicas;
      if (tree.partitions[i].state.leader != broker || replicas.size() == 1) continue;
      const bool another = std::ranges::any_of(replicas, [&](model::BrokerId other) {
        const auto* const found = members_.find(other);
        return other != broker && found != nullptr && found->alive && !found->leaving;
      });
      auto& names = another ? waiting : only_here;
      names.push_back(fmt::format("{}-{}", tree.value.name, tree.partitions[i].id.partition));
    }
  }
  response.waiting = listed(waiting);
  response.only_here = listed(only_here);
  return waiting.empty() && only_here.empty();
}

}  // namespace mq::controller
