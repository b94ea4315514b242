#include "mqctl/bench/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace mq::mqctl {

// value:   1xxxxxxxyyyy…   the highest bit, then kBits bits x that choose the bucket, the rest is
// lost
std::size_t Histogram::bucket_of(std::uint64_t value) noexcept {
  if (value < kPerDoubling) return static_cast<std::size_t>(value);
  const auto width = static_cast<unsigned>(std::bit_width(value));
  const unsigned shift = width - 1 - kBits;
  return kPerDoubling * (shift + 1) + static_cast<std::size_t>((value >> shift) - kPerDoubling);
}

std::uint64_t Histogram::top_of(std::size_t bucket) noexcept {
  if (bucket < kPerDoubling) return bucket;
  const auto shift = static_cast<unsigned>(bucket / kPerDoubling) - 1;
  const std::uint64_t first = (kPerDoubling + bucket % kPerDoubling) << shift;
  return first + ((std::uint64_t{1} << shift) - 1);
}

void Histogram::add(std::chrono::nanoseconds value, std::uint64_t count) noexcept {
  const std::int64_t ns = std::max<std::int64_t>(0, value.count());
  (*buckets_)[bucket_of(static_cast<std::uint64_t>(ns))] += count;
  count_ += count;
  if (count > 0) max_ = std::max(max_, ns);
}

void Histogram::merge(const Histogram& other) noexcept {
  for (std::size_t i = 0; i < kBuckets; ++i) (*buckets_)[i] += (*other.buckets_)[i];
  count_ += other.count_;
  max_ = std::max(max_, other.max_);
}

std::chrono::nanoseconds Histogram::percentile(double share) const noexcept {
  if (count_ == 0) return std::chrono::nanoseconds(0);
  const auto rank = std::clamp<std::uint64_t>(
      static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(count_))), 1, count_);
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < kBuckets; ++i) {
    seen += (*buckets_)[i];
    if (seen >= rank)
      return std::chrono::nanoseconds(
          std::min<std::uint64_t>(top_of(i), static_cast<std::uint64_t>(max_)));
  }
  return max();
}

}  // namespace mq::mqctl
