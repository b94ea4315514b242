#pragma once

#include <deque>

#include "sim/topic_keeper.h"

namespace mq::sim {

/// What happens to a broker world from outside while it runs: connections, links, space, clock,
/// disk and metadata store fail, and topics are replaced.
class BrokerTrouble {
 public:
  BrokerTrouble(BrokerMachine& machine, PresentBroker& present, TopicKeeper& topics,
                std::vector<std::string> clients)
      : machine_(machine), present_(present), topics_(topics), clients_(std::move(clients)) {}

  void start();
  /// No more of it; what has begun is healed by the time it has ended.
  void end() noexcept { ending_ = true; }
  [[nodiscard]] bool ended() const noexcept { return ended_; }

 private:
  asio::awaitable<void> run();
  asio::awaitable<void> cut_a_client();
  asio::awaitable<void> fill_the_disk();
  void jump_the_clock();

  BrokerMachine& machine_;
  PresentBroker& present_;
  TopicKeeper& topics_;
  const std::vector<std::string> clients_;  // their nodes; producers more than once
  /// Else the topics have a long history, in which order shows best.
  const bool replaces_topics_ = machine_.random.chance(0.5);
  std::deque<base::TimePoint> jumps_;  // the newest ones of the clock, ahead
  bool ending_ = false;
  bool ended_ = true;
};

}  // namespace mq::sim
