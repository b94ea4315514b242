#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "mqctl/bench/background_reader.h"
#include "mqctl/bench/bench_options.h"
#include "mqctl/bench/bench_topic.h"
#include "mqctl/bench/histogram.h"
#include "mqctl/cli/report.h"

namespace mq::mqctl {

/// What one run measured.
struct BenchResult {
  std::string topic;
  std::uint64_t records = 0;
  std::uint64_t failed = 0;
  std::uint64_t bytes = 0;  ///< of values
  std::chrono::nanoseconds took{};
  CpuSeconds cpu;  ///< spent between start and end
  const Histogram* latency = nullptr;
  std::string latency_of;  ///< "intended send to acknowledgement"
  std::optional<BackgroundReader::Got> reader;
};

/// Adds the result as one item and as text.
void add_result(Report& report, BenchKind kind, const BenchOptions& options,
                const BenchResult& result);
/// The JSON shape of that item.
std::string bench_shape(bool with_latency, bool with_reader = false);

}  // namespace mq::mqctl
