#include "mqctl/bench/load.h"

#include <cstring>

#include "mqctl/bench/pacer.h"

namespace mq::mqctl {

Load::Load(const BenchOptions& options, bool stamped, std::function<bool()> interrupted)
    : options_(options),
      stamped_(stamped),
      interrupted_(std::move(interrupted)),
      payload_(options.record_bytes),
      stamped_value_(stamped ? options.record_bytes : 0),
      limit_(options.record_limit().value_or(UINT64_MAX)) {}

std::uint64_t Load::stamp(Clock::time_point time) noexcept {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count());
}

Load::Clock::time_point Load::time_of(std::uint64_t stamp) noexcept {
  return Clock::time_point(std::chrono::nanoseconds(static_cast<std::int64_t>(stamp)));
}

void Load::on_delivery(const DeliveryRange& range) {
  const auto now = stamp(Clock::now());
  const std::lock_guard lock(mutex_);
  if (!range.ok()) {
    acked_.failed += range.count;
    if (!acked_.first_error) acked_.first_error = range.error;
    return;
  }
  acked_.delivered += range.count;
  for (const auto intended : range.cookies)
    acked_.latency.add(std::chrono::nanoseconds(static_cast<std::int64_t>(now - intended)));
}

bool Load::send(Producer& producer, const TopicHandle& topic, std::uint64_t intended) {
  Bytes value = payload_.next();
  if (stamped_) {
    std::memcpy(stamped_value_.data(), value.data(), value.size());
    std::memcpy(stamped_value_.data(), &intended, sizeof intended);
    value = stamped_value_;
  }
  const auto sent = producer.send(topic, std::nullopt, value, {}, intended);
  if (!sent) {
    ++refused_count_;
    refused_ = sent.error();
    return false;
  }
  ++sent_;
  return true;
}

bool Load::over(Clock::time_point now) const {
  return interrupted_() || (options_.duration && now - start_ >= *options_.duration);
}

void Load::run_paced(Producer& producer, const TopicHandle& topic) {
  const Pacer pacer(*options_.rate, start_);
  while (sent_ < limit_) {
    const auto now = Clock::now();
    if (over(now)) return;
    const auto due = std::min(pacer.due_count(now), limit_);
    while (sent_ < due)
      if (!send(producer, topic, stamp(pacer.due(sent_)))) return;
    if (sent_ < limit_ && !Pacer::sleep_until(pacer.due(sent_), interrupted_)) return;
  }
}

/// The clock is read for every 16th record, so the intended time of the others is up to 15 sends
/// early and their latency that much too long: microseconds, never too short.
void Load::run_unpaced(Producer& producer, const TopicHandle& topic) {
  constexpr std::uint64_t kClockEvery = 16;
  std::uint64_t intended = 0;
  while (sent_ < limit_) {
    if (sent_ % kClockEvery == 0) {
      const auto now = Clock::now();
      if (over(now)) return;
      intended = stamp(now);
    }
    if (!send(producer, topic, intended)) return;
  }
}

void Load::run(Producer& producer, const TopicHandle& topic) {
  start_ = Clock::now();
  if (options_.rate)
    run_paced(producer, topic);
  else
    run_unpaced(producer, topic);
}

Load::Acked Load::acked() const {
  const std::lock_guard lock(mutex_);
  Acked copy;
  copy.delivered = acked_.delivered;
  copy.failed = acked_.failed + refused_count_;
  copy.first_error = acked_.first_error ? acked_.first_error : refused_;
  copy.latency.merge(acked_.latency);
  return copy;
}

}  // namespace mq::mqctl
