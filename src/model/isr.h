#pragma once

#include "model/ids.h"

namespace mq::model {

/// A broker in the ISR or the ELR of a partition, under the registration for which that holds.
/// Under a later registration it may have lost records.
struct IsrMember {
  BrokerId broker;
  BrokerEpoch epoch;
  friend bool operator==(const IsrMember&, const IsrMember&) = default;
};

}  // namespace mq::model
