#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "mq/consumer.h"
#include "mqctl/data/offsets.h"

namespace mq::mqctl {

/// Which records `consume` reads: per partition a first offset and, when it is to stop, the offset
/// to stop before. Ends are fixed when the plan is made, so that a busy topic has one as well.
class ReadPlan {
 public:
  /// What the broker found for the places of a span that are times.
  struct AtTimes {
    std::map<TopicPartition, TimedOffset> start;
    std::map<TopicPartition, TimedOffset> end;
  };
  /// Nothing when a written start offset lies outside what the partition has; `error` then names
  /// partition, offset and range.
  static std::optional<ReadPlan> make(const std::map<TopicPartition, OffsetRange>& ranges,
                                      const OffsetSpan& span, bool stop_at_end, std::string& error,
                                      const AtTimes& times = {});

  /// All that there is and will be of them, whatever they have now: nobody is asked.
  static ReadPlan from_start(const std::vector<TopicPartition>& partitions);

  [[nodiscard]] std::map<TopicPartition, Start> starts() const;
  /// False when the record lies behind the partition's end and is not to be shown. Also notes how
  /// far the partition is. One that the plan does not have was added later, and has no end.
  bool take(const RecordView& record);
  /// For partitions whose last offsets hold no records: where the consumer stands.
  void advance(const std::map<TopicPartition, std::int64_t>& positions);
  /// Every partition has an end and has reached it.
  [[nodiscard]] bool done() const;
  /// No partition has a record between its start and its present end, as far as is known.
  [[nodiscard]] bool nothing_there() const;

 private:
  struct Part {
    std::int64_t next = 0;
    std::optional<std::int64_t> end;
    bool empty = false;
    bool from_start = false;
  };
  std::map<TopicPartition, Part, std::less<>> parts_;
  // The partition of the last record, since records come in runs.
  const std::string* last_topic_ = nullptr;
  std::int32_t last_partition_ = -1;
  Part* last_ = nullptr;
  std::size_t open_ = 0;  // partitions with an end that is not reached, or without one

  void move(Part& part, std::int64_t next);
};

}  // namespace mq::mqctl
