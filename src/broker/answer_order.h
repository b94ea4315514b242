#pragma once

#include <deque>
#include <functional>
#include <list>
#include <map>
#include <vector>

#include "model/ids.h"

namespace mq::broker {

/// Keeps the answers of produce requests for one partition in the order in which the requests were
/// sent on their connection (PRO-3), however their partitions' disks differ. Requests without a
/// partition in common do not wait for each other.
class AnswerOrder {
 public:
  struct Entry;
  using Ticket = std::list<Entry>::iterator;
  struct Entry {
    std::vector<model::PartitionId> partitions;
    std::size_t behind = 0;  ///< partitions in which an earlier request is not answered
    std::function<void()> answer;
  };

  /// In order of arrival.
  Ticket begin(std::vector<model::PartitionId> partitions);
  /// The request is done: `answer` is called as soon as it is its turn, perhaps at once.
  void done(Ticket ticket, std::function<void()> answer);
  [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }

 private:
  void send(Ticket ticket);

  std::list<Entry> entries_;
  // Ordered, since the ids are whatever the peer wrote.
  std::map<model::PartitionId, std::deque<Ticket>> by_partition_;
};

}  // namespace mq::broker
