#pragma once

#include <functional>
#include <string>
#include <vector>

namespace mq::mqctl {

/// Names of the cluster behind these brokers; of the default ones when the list is empty.
struct ClusterNames {
  using Ask = std::function<std::vector<std::string>(const std::vector<std::string>& brokers)>;
  Ask topics;
  Ask brokers;  ///< ids
};

/// What may stand in place of the last of `words` (the line without the program's name). Empty
/// where the shell is to complete file names. Asks the cluster only where one of its names is
/// wanted.
std::vector<std::string> candidates(const std::vector<std::string>& words,
                                    const ClusterNames& names);

}  // namespace mq::mqctl
