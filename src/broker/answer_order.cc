#include "broker/answer_order.h"

namespace mq::broker {

AnswerOrder::Ticket AnswerOrder::begin(std::vector<model::PartitionId> partitions) {
  const Ticket ticket = entries_.emplace(entries_.end());
  ticket->partitions = std::move(partitions);
  for (const auto& partition : ticket->partitions) {
    auto& line = by_partition_[partition];
    if (!line.empty() && line.back() == ticket) continue;  // named twice
    if (!line.empty()) ++ticket->behind;
    line.push_back(ticket);
  }
  return ticket;
}

void AnswerOrder::done(Ticket ticket, std::function<void()> answer) {
  ticket->answer = std::move(answer);
  if (ticket->behind == 0) send(ticket);
}

void AnswerOrder::send(Ticket first) {
  std::vector<Ticket> ready{first};
  while (!ready.empty()) {
    const Ticket ticket = ready.back();
    ready.pop_back();
    const auto answer = std::move(ticket->answer);
    for (const auto& partition : ticket->partitions) {
      const auto line = by_partition_.find(partition);
      if (line == by_partition_.end() || line->second.front() != ticket) continue;  // named twice
      line->second.pop_front();
      if (line->second.empty()) {
        by_partition_.erase(line);
        continue;
      }
      const Ticket next = line->second.front();
      if (--next->behind == 0 && next->answer) ready.push_back(next);
    }
    entries_.erase(ticket);
    answer();
  }
}

}  // namespace mq::broker
