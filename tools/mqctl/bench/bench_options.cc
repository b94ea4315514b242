#include "mqctl/bench/bench_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "mqctl/cli/client.h"
#include "mqctl/verbs/choices.h"

namespace mq::mqctl {

std::optional<std::uint64_t> BenchOptions::record_limit() const {
  std::optional<std::uint64_t> limit = records;
  if (bytes) {
    const auto by_bytes = (*bytes + record_bytes - 1) / record_bytes;
    limit = std::min(limit.value_or(by_bytes), by_bytes);
  }
  return limit;
}

std::vector<Flag> bench_flags(BenchKind kind) {
  const bool e2e = kind == BenchKind::e2e;
  std::vector<Flag> flags = {
      {.name = "topic",
       .kind = Kind::text,
       .value = "NAME",
       .help = "use this topic; else one is made and deleted",
       .complete = Complete::topics},
      {.name = "partitions",
       .letter = 'p',
       .kind = Kind::number,
       .value = "N",
       .help = "of the topic that is made",
       .fallback = "1",
       .least = 1,
       .most = 10'000},
      {.name = "durability",
       .kind = Kind::choice,
       .value = "HOW",
       .help = "memory or disk, of the topic that is made",
       .choices = {"memory", "disk"},
       .fallback = "memory",
       .complete = Complete::choices},
      {.name = "records",
       .kind = Kind::number,
       .value = "N",
       .help = "end after so many",
       .least = 1},
      {.name = "bytes", .kind = Kind::bytes, .value = "SIZE", .help = "end after so much"},
      {.name = "duration",
       .kind = Kind::duration,
       .value = "TIME",
       .help = kind == BenchKind::consume ? "end after so long"
                                          : "end after so long; 10s if no limit is given"},
      {.name = "record-bytes",
       .kind = Kind::bytes,
       .value = "SIZE",
       .help = "of each value, which does not compress",
       .fallback = e2e ? "128B" : "1KiB"},
      {.name = "batch-bytes",
       .kind = Kind::bytes,
       .value = "SIZE",
       .help = "a batch is sent at this size",
       .fallback = "128KiB"},
      {.name = "linger",
       .kind = Kind::duration,
       .value = "TIME",
       .help = "or after so long",
       .fallback = e2e ? "0ms" : "5ms"},
      acks_flag(e2e ? "leader" : "all"),
      compression_flag("none")};
  if (kind != BenchKind::consume)
    flags.push_back({.name = "rate",
                     .kind = Kind::rate,
                     .value = "N",
                     .help = "records a second, evenly spaced; else as fast as possible",
                     .fallback = e2e ? "1000" : ""});
  if (kind == BenchKind::produce)
    flags.push_back({.name = "reader",
                     .kind = Kind::text,
                     .value = "TOPIC",
                     .help = "read this topic from its start meanwhile, to see what that costs",
                     .complete = Complete::topics});
  return flags;
}

BenchOptions bench_options(const Context& context, BenchKind kind) {
  const auto& args = context.args;
  BenchOptions options;
  options.topic = args.maybe_text("topic");
  options.partitions = static_cast<std::int32_t>(args.number("partitions"));
  options.durability = args.text("durability");
  if (args.has("records")) options.records = static_cast<std::uint64_t>(args.number("records"));
  if (args.has("bytes")) options.bytes = args.bytes("bytes");
  if (args.has("duration")) options.duration = args.duration("duration");
  if (kind == BenchKind::consume) {
    if (!options.topic && !options.record_limit()) options.bytes = std::uint64_t{1} << 30;
  } else {
    if (!options.record_limit() && !options.duration) options.duration = std::chrono::seconds(10);
  }
  options.record_bytes = args.bytes("record-bytes");
  options.batch_bytes = args.bytes("batch-bytes");
  options.linger = args.duration("linger");
  options.acks = args.text("acks");
  options.compression = args.text("compression");
  if (kind != BenchKind::consume && args.has("rate")) options.rate = args.rate("rate");
  if (kind == BenchKind::produce) options.reader = args.maybe_text("reader");
  const std::size_t least = kind == BenchKind::e2e ? 8 : 1;
  if (options.record_bytes < least || options.record_bytes > (std::size_t{1} << 30))
    throw Failed(usage_failure("--record-bytes is out of range",
                               fmt::format("it must be {}B to 1GiB{}", least,
                                           least == 8 ? "; the send time is in it" : "")));
  return options;
}

ProducerConfig bench_producer_config(const Context& context, const BenchOptions& options) {
  ProducerConfig config;
  static_cast<ClientConfig&>(config) = client_config(context);
  config.acks = acks_of(options.acks);
  config.compression = compression_of(options.compression);
  config.linger = options.linger;
  config.batch_bytes = options.batch_bytes;
  return config;
}

}  // namespace mq::mqctl
