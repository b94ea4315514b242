#pragma once

#include <cstdint>
#include <string>

namespace mq::sim {

/// How one seed ended.
struct Report {
  std::string world;
  std::uint64_t seed = 0;
  std::string violation;  ///< empty: all promises were kept
  std::string trace;      ///< the newest events, of a failed seed
  std::uint64_t trace_hash = 0;
  std::uint64_t steps = 0;
  std::uint64_t lives = 0;        ///< process starts
  std::uint64_t records = 0;      ///< appended, or acknowledged
  std::uint64_t elections = 0;    ///< changes of leaders
  std::uint64_t losses = 0;       ///< leaders that lacked records
  std::uint64_t isr_shrinks = 0;  ///< with them or without

  [[nodiscard]] bool ok() const noexcept { return violation.empty(); }
};

}  // namespace mq::sim
