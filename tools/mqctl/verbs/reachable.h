#pragma once

#include <map>
#include <string>
#include <vector>

#include "mq/consumer.h"
#include "mqctl/cli/context.h"

namespace mq::mqctl {

/// What partitions have now, and why others could not be asked.
struct Reached {
  std::map<TopicPartition, OffsetRange> ranges;
  std::map<TopicPartition, Error> unreached;

  [[nodiscard]] std::vector<TopicPartition> names() const;
};

/// Asks the leaders. Those that are away are waited for as long as every request; then the
/// partitions of the others are found, so that one broker keeps nobody from theirs. Throws Failed,
/// with `what`, when that leaves none, or for an error that is no broker's absence.
Reached reach(const Context& context, Consumer& consumer,
              const std::vector<TopicPartition>& partitions, const std::string& what);

}  // namespace mq::mqctl
