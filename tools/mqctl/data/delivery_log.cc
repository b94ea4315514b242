#include "mqctl/data/delivery_log.h"

namespace mq::mqctl {

bool concerns_one_record(const Error& error) {
  switch (error.code) {
    case Errc::record_too_large:
    case Errc::batch_too_large:
    case Errc::invalid_argument:
    case Errc::unknown_partition:
      return !error.fatal;
    default:
      return false;
  }
}

void DeliveryLog::sending(std::uint64_t number) {
  if (number % kSampled != 1) return;
  const auto now = Clock::now();
  const std::lock_guard lock(mutex_);
  samples_[number / kSampled % kSlots] = {number, now};
}

void DeliveryLog::print(const DeliveryRange& range) {
  std::string lines;
  RecordView view;
  view.topic = range.topic;
  view.partition = range.partition;
  view.timestamp = range.timestamp;
  for (std::size_t i = 0; i < range.count; ++i) {
    view.offset = range.first_offset < 0 ? -1 : range.first_offset + static_cast<std::int64_t>(i);
    print_->append(view, lines);
    lines += '\n';
  }
  out_.write(lines);
  out_.flush();
}

void DeliveryLog::time(const DeliveryRange& range, Clock::time_point now) {
  for (const auto number : range.cookies) {
    if (number % kSampled != 1) continue;
    const auto& sample = samples_[number / kSampled % kSlots];
    if (sample.number == number) latency_.add(now - sample.sent);
  }
}

void DeliveryLog::delivered(const DeliveryRange& range) {
  const auto now = Clock::now();
  const std::lock_guard lock(mutex_);
  if (range.ok()) {
    delivered_ += range.count;
    partitions_.insert(range.partition);
    time(range, now);
    if (print_) print(range);
    return;
  }
  failed_ += range.count;
  if (!concerns_one_record(range.error)) broken_ = true;
  for (const auto number : range.cookies)
    if (first_lost_.size() < kNamed) first_lost_.push_back({number, range.error});
}

bool DeliveryLog::broken() const {
  const std::lock_guard lock(mutex_);
  return broken_;
}

DeliveryLog::Summary DeliveryLog::summary() const {
  const std::lock_guard lock(mutex_);
  return {delivered_, failed_, partitions_.size(), first_lost_, latency_.percentile(0.99)};
}

}  // namespace mq::mqctl
