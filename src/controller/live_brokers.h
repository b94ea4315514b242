#pragma once

#include <map>

#include "model/isr.h"

namespace mq::controller {

/// The brokers that live, as far as elections ask: under which registration, and whether they are
/// about to stop.
class LiveBrokers {
 public:
  void add(model::BrokerId broker, model::BrokerEpoch epoch, bool leaving = false) {
    brokers_[broker] = {epoch, leaving};
  }

  /// It lives under this very registration. Under another one it may have lost records.
  [[nodiscard]] bool has(const model::IsrMember& member) const {
    const auto found = brokers_.find(member.broker);
    return found != brokers_.end() && found->second.epoch == member.epoch;
  }
  /// The same, and it is not about to stop.
  [[nodiscard]] bool stays(const model::IsrMember& member) const {
    const auto found = brokers_.find(member.broker);
    return found != brokers_.end() && found->second.epoch == member.epoch && !found->second.leaving;
  }

 private:
  struct Live {
    model::BrokerEpoch epoch;
    bool leaving = false;
  };
  std::map<model::BrokerId, Live> brokers_;
};

}  // namespace mq::controller
