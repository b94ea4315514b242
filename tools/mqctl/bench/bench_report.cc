#include "mqctl/bench/bench_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "mqctl/cli/table.h"
#include "mqctl/cli/text.h"

namespace mq::mqctl {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;

struct Rates {
  double seconds;
  double records;  // per second
  double mib;      // per second
  double gib;      // in all
};

Rates rates_of(const BenchResult& result) {
  const double seconds = std::max(1e-9, std::chrono::duration<double>(result.took).count());
  return {seconds, static_cast<double>(result.records) / seconds,
          static_cast<double>(result.bytes) / kMiB / seconds,
          static_cast<double>(result.bytes) / kMiB / 1024};
}

double micros(std::chrono::nanoseconds time) { return static_cast<double>(time.count()) / 1e3; }

void set_latency(Value& item, const Histogram& latency) {
  item.set("latency_p50_us", micros(latency.percentile(0.5)))
      .set("latency_p99_us", micros(latency.percentile(0.99)))
      .set("latency_p999_us", micros(latency.percentile(0.999)))
      .set("latency_max_us", micros(latency.max()));
}

double reader_mib(const BackgroundReader::Got& got) {
  const double seconds = std::chrono::duration<double>(got.took).count();
  return seconds > 0 ? static_cast<double>(got.bytes) / kMiB / seconds : 0;
}

Value item_of(BenchKind kind, const BenchOptions& options, const BenchResult& result) {
  const auto rates = rates_of(result);
  Value item = Value::object();
  item.set("topic", result.topic)
      .set("own_topic", !options.topic)
      .set("partitions", options.topic ? Value() : Value(options.partitions))
      .set("durability", options.topic ? Value() : Value(options.durability))
      .set("acks", options.acks)
      .set("compression", options.compression)
      .set("record_bytes", std::uint64_t{options.record_bytes})
      .set("batch_bytes", std::uint64_t{options.batch_bytes})
      .set("linger_ms", std::int64_t{options.linger.count()})
      .set("rate_target", options.rate ? Value(*options.rate) : Value())
      .set("records", result.records)
      .set("failed", result.failed)
      .set("bytes", result.bytes)
      .set("duration_ms", rates.seconds * 1000)
      .set("records_per_second", rates.records)
      .set("mib_per_second", rates.mib);
  if (result.latency != nullptr) set_latency(item, *result.latency);
  if (kind == BenchKind::produce) {
    item.set("reader_topic", options.reader ? Value(*options.reader) : Value())
        .set("reader_bytes", result.reader ? Value(result.reader->bytes) : Value())
        .set("reader_mib_per_second", result.reader ? Value(reader_mib(*result.reader)) : Value());
  }
  item.set("client_cpu_seconds", result.cpu.client)
      .set("broker_cpu_seconds", result.cpu.brokers)
      .set("client_cpu_seconds_per_gib",
           rates.gib > 0 ? Value(result.cpu.client / rates.gib) : Value())
      .set("broker_cpu_seconds_per_gib",
           rates.gib > 0 ? Value(result.cpu.brokers / rates.gib) : Value());
  return item;
}

std::string settings_line(const BenchOptions& options) {
  std::string line = fmt::format(
      "  settings  records of {}, batches of {}, linger {}, acks {}, compression {}",
      base::format_bytes_exact(options.record_bytes), base::format_bytes_exact(options.batch_bytes),
      base::format_duration_exact(options.linger), options.acks, options.compression);
  if (!options.topic)
    line += fmt::format(", {}, durability {}",
                        counted(static_cast<std::uint64_t>(options.partitions), "partition"),
                        options.durability);
  if (options.rate) line += fmt::format(", {} records/s wanted", *options.rate);
  return line + "\n";
}

std::string latency_line(const BenchResult& result) {
  const auto& latency = *result.latency;
  return fmt::format("  latency   p50 {}   p99 {}   p99.9 {}   max {}   ({})\n",
                     format_time(latency.percentile(0.5)), format_time(latency.percentile(0.99)),
                     format_time(latency.percentile(0.999)), format_time(latency.max()),
                     result.latency_of);
}

}  // namespace

void add_result(Report& report, BenchKind kind, const BenchOptions& options,
                const BenchResult& result) {
  const auto rates = rates_of(result);
  report.item(item_of(kind, options, result));
  report.text(fmt::format("{}, {} in {}\n", counted(result.records, "record"),
                          base::format_bytes(result.bytes), format_time(result.took)));
  report.text(fmt::format("  rate      {} records/s   {:.1f} MiB/s\n",
                          grouped(static_cast<std::uint64_t>(rates.records)), rates.mib));
  if (result.latency != nullptr) report.text(latency_line(result));
  if (result.reader)
    report.text(fmt::format("  reader    {:.1f} MiB/s of {}, {} in all\n",
                            reader_mib(*result.reader), *options.reader,
                            base::format_bytes(result.reader->bytes)));
  report.text(fmt::format("  cpu       client {:.2f} s   broker {:.2f} s", result.cpu.client,
                          result.cpu.brokers));
  if (rates.gib > 0)
    report.text(fmt::format("   (per GiB: {:.2f} s and {:.2f} s)", result.cpu.client / rates.gib,
                            result.cpu.brokers / rates.gib));
  report.text("\n");  // not as one sum: g++ 12 warns falsely about that (its bug 105651)
  report.text(settings_line(options));
}

std::string bench_shape(bool with_latency, bool with_reader) {
  std::string shape =
      R"({"topic":"string","own_topic":"bool","partitions":"int|null","durability":"string|null",)"
      R"("acks":"string","compression":"string","record_bytes":"int","batch_bytes":"int",)"
      R"("linger_ms":"int","rate_target":"float|null","records":"int","failed":"int",)"
      R"("bytes":"int","duration_ms":"float","records_per_second":"float",)"
      R"("mib_per_second":"float",)";
  if (with_latency)
    shape += R"("latency_p50_us":"float","latency_p99_us":"float","latency_p999_us":"float",)"
             R"("latency_max_us":"float",)";
  if (with_reader)
    shape += R"("reader_topic":"string|null","reader_bytes":"int|null",)"
             R"("reader_mib_per_second":"float|null",)";
  return shape +
         R"("client_cpu_seconds":"float","broker_cpu_seconds":"float",)"
         R"("client_cpu_seconds_per_gib":"float|null","broker_cpu_seconds_per_gib":"float|null"})";
}

}  // namespace mq::mqctl
