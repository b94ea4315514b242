#pragma once

#include <string>
#include <vector>

#include "client/core/client_core.h"
#include "mq/admin.h"
#include "protocol/add_partitions.h"
#include "protocol/alter_topics.h"
#include "protocol/topics.h"

namespace mq::client {

// The items of calls that have one outcome each.

inline const std::string& name_of(const std::string& name) { return name; }
inline const std::string& name_of(const protocol::NewTopic& topic) { return topic.name; }
inline const std::string& name_of(const protocol::AlterTopic& topic) { return topic.name; }
inline const std::string& name_of(const protocol::PartitionTotal& topic) { return topic.name; }

/// An item that the broker's answer does not mention.
Error left_out(const std::string& name);

/// False for a name that no request carries as it is: its answer could not be told from others.
bool sendable(const std::string& name);
/// The outcome of a name that is no topic's, whatever a broker says.
Error no_such_topic(const std::string& name);

/// "broker 2 (hdd-02:9500)" of who said so; empty when unknown.
std::string broker_place(const ClientCore& core, std::int32_t broker);

/// Takes the items out that cannot be sent; they have their outcome.
template <class Item, class T>
void refuse_unsendable(std::vector<Item>& items, PerItem<T>& outcomes) {
  std::erase_if(items, [&](const Item& item) {
    if (sendable(name_of(item))) return false;
    outcomes.emplace(name_of(item), no_such_topic(name_of(item)));
    return true;
  });
}

}  // namespace mq::client
