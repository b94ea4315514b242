#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/broker_life.h"
#include "sim/clients.h"

namespace mq::controller {
class Controller;
}

namespace mq::sim {

/// One topic name over all lives.
struct SimTopic {
  std::string name;
  std::int32_t partitions = 1;
  bool memory = false;
  std::map<std::string, std::string> overrides;
  base::Uuid id;         ///< zero: none that we know of
  bool leaving = false;  ///< a deletion was begun and has not been seen to have happened
};

/// The topics of a broker world: makes them, deletes some and makes them again under the old name,
/// whatever happens to the broker meanwhile, and holds the metadata against what was answered.
class TopicKeeper {
 public:
  TopicKeeper(BrokerMachine& machine, PresentBroker& present, SharedLedger& ledger);

  void start();
  void end() noexcept { ending_ = true; }
  [[nodiscard]] bool ended() const noexcept { return ended_; }

  [[nodiscard]] const std::vector<SimTopic>& topics() const noexcept { return topics_; }
  /// One of them is deleted soon, and made again.
  void replace_one();
  /// All are there and none is on its way out.
  [[nodiscard]] bool settled() const;

  /// Straight after a start. MET-1: what was answered is so still. MET-2: what is gone stays gone.
  void check_started();
  /// No nodes and no directories but those of the topics.
  [[nodiscard]] bool tidy() const;
  /// The topic's id in the present image; zero if it has none.
  [[nodiscard]] base::Uuid id_of(const std::string& name) const;

 private:
  void draw_topics();
  [[nodiscard]] controller::Controller* controller() const;
  asio::awaitable<void> run();
  asio::awaitable<void> make(SimTopic& topic);
  asio::awaitable<void> remove(SimTopic& topic);
  void check_refusal(const SimTopic& topic, const protocol::Status& status) const;

  BrokerMachine& machine_;
  PresentBroker& present_;
  SharedLedger& ledger_;
  std::vector<SimTopic> topics_;
  std::set<base::Uuid> deleted_;
  bool ending_ = false;
  bool ended_ = true;
};

}  // namespace mq::sim
