#include "mqctl/bench/payload.h"

#include <algorithm>
#include <cstring>
#include <random>

namespace mq::mqctl {

Payload::Payload(std::size_t record_bytes)
    : block_(std::max(std::size_t{1} << 20, 2 * record_bytes)), record_bytes_(record_bytes) {
  // The same bytes in every run, so that runs compare.
  std::mt19937_64 random(20'240'229);  // NOLINT(cert-msc51-cpp)
  for (std::size_t at = 0; at < block_.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t word = random();
    std::memcpy(block_.data() + at, &word, std::min(sizeof word, block_.size() - at));
  }
}

Bytes Payload::next() noexcept {
  if (at_ + record_bytes_ > block_.size()) at_ = 0;
  const Bytes value(block_.data() + at_, record_bytes_);
  at_ += record_bytes_;
  return value;
}

}  // namespace mq::mqctl
