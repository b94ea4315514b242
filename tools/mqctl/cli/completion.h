#pragma once

#include <functional>
#include <string>
#include <vector>

namespace mq::mqctl {

/// Topic names of the cluster behind these brokers; the default ones when the list is empty.
using TopicNames = std::function<std::vector<std::string>(const std::vector<std::string>& brokers)>;

/// What may stand in place of the last of `words` (the line without the program's name). Empty
/// where the shell is to complete file names. Asks the cluster only where a topic is wanted.
std::vector<std::string> candidates(const std::vector<std::string>& words,
                                    const TopicNames& topic_names);

}  // namespace mq::mqctl
