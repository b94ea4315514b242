#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mq/config.h"
#include "mqctl/cli/context.h"
#include "mqctl/cli/registry.h"

namespace mq::mqctl {

/// What one benchmark run does. It ends at the first of the limits that are given.
struct BenchOptions {
  std::optional<std::string> topic;  ///< none: one of its own, deleted afterwards
  std::int32_t partitions = 1;
  std::string durability;
  std::optional<std::uint64_t> records;
  std::optional<std::uint64_t> bytes;  ///< of values
  std::optional<std::chrono::milliseconds> duration;
  std::size_t record_bytes = 1024;
  std::size_t batch_bytes = 0;
  std::chrono::milliseconds linger{};
  std::string acks;
  std::string compression;
  std::optional<std::string> reader;  ///< topic that is read from its start meanwhile
  std::optional<double> rate;         ///< records per second; none: as fast as possible

  /// How many records to send, when records or bytes say so.
  [[nodiscard]] std::optional<std::uint64_t> record_limit() const;
};

enum class BenchKind { produce, consume, e2e };

/// The flags of one benchmark, with its defaults.
std::vector<Flag> bench_flags(BenchKind kind);
/// Throws Failed for values that do not go together.
BenchOptions bench_options(const Context& context, BenchKind kind);

ProducerConfig bench_producer_config(const Context& context, const BenchOptions& options);

}  // namespace mq::mqctl
