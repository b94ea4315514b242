#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "mq/admin.h"
#include "mqctl/cli/context.h"
#include "mqctl/cli/value.h"

namespace mq::mqctl {

using Brokers = std::map<std::int32_t, Result<BrokerDescription>>;

/// What several verbs say about brokers.
std::string address_of(const ClusterDescription& cluster, std::int32_t id);
/// Empty, or null: none was given.
std::string rack_of(const ClusterDescription& cluster, std::int32_t id);
Value rack_value(const ClusterDescription& cluster, std::int32_t id);
bool is_away(const ClusterDescription& cluster, std::int32_t id);
/// Of its own rules, how often one was found broken.
std::int64_t broken_invariants(const BrokerDescription& broker);
/// "63%" of a disk is full; "?" when its size is unknown.
std::string percent_full(const DiskDescription& disk);
/// The JSON of one broker.
Value broker_value(const BrokerDescription& broker);
/// Its lines in `status` and `broker describe`.
std::string broker_text(const BrokerDescription& broker);
/// Of its wall clock: "within 1 s of the median of all", "1d0h ahead of the median of all".
std::string clock_text(const BrokerDescription& broker);
std::string counters_text(const BrokerDescription& broker);
/// The shape of broker_value().
extern const char* const kBrokerShape;

/// The positionals as broker ids; none: all. Throws USAGE.
std::vector<std::int32_t> wanted_brokers(const Context& context);
/// "there is no broker 7".
Failure no_such_broker(std::int32_t id);

/// "1,2,3"; empty for none.
std::string ids_text(const std::vector<std::int32_t>& brokers);
Value ids_value(const std::vector<std::int32_t>& brokers);

}  // namespace mq::mqctl
