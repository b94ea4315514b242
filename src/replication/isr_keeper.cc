#include "replication/isr_keeper.h"

#include <algorithm>

#include "base/log.h"
#include "base/run_on.h"

namespace mq::replication {
namespace {

using Proposals = std::vector<protocol::IsrProposal>;

/// More changes at a time than these are logged as a number.
constexpr std::size_t kNamedMax = 20;

std::string text_of(const std::vector<IsrMember>& isr) {
  std::string text;
  for (const IsrMember& member : isr)
    text += fmt::format("{}{}", text.empty() ? "" : ",", member.broker);
  return text;
}

/// On the partitions' worker. At most `most` of them; the others are asked for next time.
asio::awaitable<void> collect(const PartitionTable& table, Isr::Registered registered,
                              std::size_t most, Proposals& proposals) {
  for (const auto& [id, partition] : table.all()) {
    if (proposals.size() >= most) co_return;
    if (!partition->replicated()) continue;
    if (auto proposal = partition->isr_request(registered))
      proposals.push_back(*std::move(proposal));
  }
}

/// On the partitions' worker. `results` are in the order of what was asked for, and may lack some:
/// nothing is known of them.
asio::awaitable<void> distribute(const PartitionTable& table, const Proposals& proposals,
                                 const std::vector<protocol::IsrResult>& results) {
  auto from = results.begin();
  for (const auto& proposal : proposals) {
    const auto found =
        std::ranges::find(from, results.end(), proposal.partition, &protocol::IsrResult::partition);
    if (found != results.end()) from = std::next(found);
    // One that leads in another epoch by now has not asked for this.
    Partition* partition = table.find(proposal.partition);
    if (!partition || !partition->replicated() ||
        partition->isr_state().leader_epoch != proposal.leader_epoch)
      continue;
    if (found == results.end() || found->state.version == model::PartitionVersion()) {
      partition->isr_answered(std::nullopt);
      continue;
    }
    partition->isr_answered(found->state);
    if (proposals.size() > kNamedMax) continue;
    if (found->status.ok()) {
      base::log_info("isr", "{}: in sync are {} (version {})", proposal.partition.text(),
                     text_of(found->state.isr), found->state.version);
    } else {
      base::log_warning("isr", "{}: ISR {} was refused: {}", proposal.partition.text(),
                        text_of(proposal.isr), found->status.text);
    }
  }
  if (proposals.size() > kNamedMax)
    base::log_info("isr", "another ISR was asked for in {} partitions", proposals.size());
  co_return;
}

}  // namespace

IsrKeeper::IsrKeeper(Config config, base::Runtime& home, ControllerLink& controller,
                     const ClusterView& view, std::vector<LedPartitions> led,
                     std::function<BrokerEpoch()> epoch, std::function<bool()> may_ask)
    : config_(config),
      home_(home),
      controller_(controller),
      view_(view),
      led_(std::move(led)),
      epoch_(std::move(epoch)),
      may_ask_(std::move(may_ask)),
      changed_(home),
      tasks_(home) {}

void IsrKeeper::start() {
  look_at_ = home_.now() + config_.look_every;
  tasks_.spawn("isr keeper", run());
}

void IsrKeeper::wake() {
  if (woken_.exchange(true)) return;
  home_.post([this, alive = std::weak_ptr(alive_)] {
    if (!alive.expired()) changed_.notify_all();
  });
}

void IsrKeeper::give_up() {
  stopping_ = true;
  changed_.notify_all();
}

asio::awaitable<void> IsrKeeper::stop() {
  give_up();
  co_await tasks_.wait();
}

asio::awaitable<void> IsrKeeper::run() {
  while (!stopping_) {
    const auto now = home_.now();
    const auto due = std::max(woken_ ? now : look_at_, not_before_);
    if (now < due) {
      co_await changed_.wait_until(due);
      continue;
    }
    woken_ = false;
    look_at_ = now + config_.look_every;
    co_await look();
  }
}

/// The epoch under which a broker is live, by the image of now.
Isr::Registered IsrKeeper::registered() const {
  return [image = view_.image()](BrokerId id) -> std::optional<BrokerEpoch> {
    const auto* broker = image ? image->find_broker(id) : nullptr;
    if (!broker || !broker->alive) return std::nullopt;
    return broker->epoch;
  };
}

asio::awaitable<void> IsrKeeper::look() {
  not_before_ = home_.now() + config_.pause;
  // Without a lease another broker may lead by now.
  if (!may_ask_()) co_return;
  std::vector<Proposals> proposals(led_.size());
  std::size_t left = protocol::kIsrProposalsMax;
  for (std::size_t i = 0; i < led_.size(); ++i) {
    co_await base::run_on(*led_[i].runtime,
                          collect(*led_[i].table, registered(), left, proposals[i]));
    left -= proposals[i].size();
  }
  if (left == protocol::kIsrProposalsMax) co_return;
  if (left == 0) woken_ = true;
  const bool answered = co_await ask(std::move(proposals));
  if (!answered) not_before_ = home_.now() + config_.pause_after_failure;
}

asio::awaitable<bool> IsrKeeper::ask(std::vector<Proposals> proposals) {
  protocol::AlterIsrRequest request;
  request.broker = config_.self.value();
  request.broker_epoch = epoch_().value();
  for (const auto& own : proposals)
    request.entries.insert(request.entries.end(), own.begin(), own.end());
  const auto deadline = home_.now() + config_.call_timeout;
  auto response = co_await controller_.alter_isr(std::move(request), deadline);
  const bool answered = response && response->envelope.status.ok();
  std::vector<protocol::IsrResult> results;
  if (answered) results = std::move(response->results);
  if (!answered && !stopping_) {
    base::log_warning("isr", "the controller does not answer about ISRs: {}",
                      response ? response->envelope.status.text : response.error().message());
  }
  // Asked again while the outcome is not known: what is not wanted any more is given up.
  look_at_ = std::min(look_at_, home_.now() + config_.pause_after_failure);
  co_await tell(std::move(proposals), std::move(results));
  co_return answered;
}

asio::awaitable<void> IsrKeeper::tell(std::vector<Proposals> proposals,
                                      std::vector<protocol::IsrResult> results) {
  for (std::size_t i = 0; i < led_.size(); ++i) {
    if (proposals[i].empty()) continue;
    co_await base::run_on(*led_[i].runtime, distribute(*led_[i].table, proposals[i], results));
  }
}

}  // namespace mq::replication
