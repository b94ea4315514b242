#pragma once

#include <cstdint>
#include <string>

#include "mq/admin.h"
#include "mqctl/cli/value.h"

namespace mq::mqctl {

/// One topic of `topic list`. `damaged`: so many of its partitions have a replica that is damaged
/// in places.
Value listed_topic(const TopicSummary& topic, std::int32_t damaged);
/// What is wrong with it, for people; empty: nothing is known to be.
std::string topic_note(const TopicSummary& topic, std::int32_t damaged);

}  // namespace mq::mqctl
