#include "mqctl/data/read_plan.h"

#include <fmt/format.h>

#include <algorithm>

namespace mq::mqctl {
namespace {

std::int64_t offset_in(const std::map<TopicPartition, TimedOffset>& found,
                       const TopicPartition& partition) {
  const auto at = found.find(partition);
  return at == found.end() ? -1 : at->second.offset;
}

}  // namespace

std::optional<ReadPlan> ReadPlan::make(const std::map<TopicPartition, OffsetRange>& ranges,
                                       const OffsetSpan& span, bool stop_at_end, std::string& error,
                                       const AtTimes& times) {
  ReadPlan plan;
  for (const auto& [partition, range] : ranges) {
    Part part;
    part.next = resolve(span.start, range, offset_in(times.start, partition));
    if (part.next < range.start || part.next > range.end) {
      error = fmt::format("{} partition {} has offsets {} to {} (exclusive), not {}",
                          partition.topic, partition.partition, range.start, range.end, part.next);
      return std::nullopt;
    }
    if (span.end) part.end = resolve(*span.end, range, offset_in(times.end, partition));
    if (stop_at_end) part.end = std::min(part.end.value_or(range.end), range.end);
    part.empty = part.next >= range.end;
    if (!part.end || part.next < *part.end) ++plan.open_;
    plan.parts_.emplace(partition, part);
  }
  return plan;
}

ReadPlan ReadPlan::from_start(const std::vector<TopicPartition>& partitions) {
  ReadPlan plan;
  for (const auto& partition : partitions) {
    Part part;
    part.empty = true;
    part.from_start = true;
    plan.parts_.emplace(partition, part);
    ++plan.open_;
  }
  return plan;
}

std::map<TopicPartition, Start> ReadPlan::starts() const {
  std::map<TopicPartition, Start> starts;
  for (const auto& [partition, part] : parts_) {
    if (part.end && part.next >= *part.end) continue;
    starts.emplace(partition, part.from_start ? Start{} : Start::at(part.next));
  }
  return starts;
}

void ReadPlan::move(Part& part, std::int64_t next) {
  const bool was_open = !part.end || part.next < *part.end;
  part.next = std::max(part.next, next);
  if (was_open && part.end && part.next >= *part.end) --open_;
}

bool ReadPlan::take(const RecordView& record) {
  if (last_ == nullptr || last_partition_ != record.partition || *last_topic_ != record.topic) {
    const TopicPartition name{std::string(record.topic), record.partition};
    const auto [at, added] = parts_.try_emplace(name);
    if (added) ++open_;
    last_topic_ = &at->first.topic;
    last_partition_ = record.partition;
    last_ = &at->second;
  }
  const bool wanted = !last_->end || record.offset < *last_->end;
  move(*last_, record.offset + 1);
  return wanted;
}

void ReadPlan::advance(const std::map<TopicPartition, std::int64_t>& positions) {
  for (const auto& [partition, position] : positions) {
    const auto at = parts_.find(partition);
    if (at != parts_.end()) move(at->second, position);
  }
}

bool ReadPlan::done() const { return open_ == 0; }

bool ReadPlan::nothing_there() const {
  return std::all_of(parts_.begin(), parts_.end(),
                     [](const auto& entry) { return entry.second.empty; });
}

}  // namespace mq::mqctl
