#include <fmt/format.h>

#include "mqctl/bench/bench_report.h"
#include "mqctl/bench/load.h"
#include "mqctl/cli/client.h"
#include "mqctl/verbs/verbs.h"

namespace mq::mqctl {
namespace {

Exit bench(Context& context) {
  const auto options = bench_options(context, BenchKind::produce);
  auto admin = connect_admin(context);
  const BenchTopic made(context, admin, options);
  Load load(options, false, context.console.interrupted);
  auto config = bench_producer_config(context, options);
  config.on_delivery = [&load](const DeliveryRange& range) { load.on_delivery(range); };
  auto producer = connected(context, Producer::create(std::move(config)));
  const auto topic = take(producer.topic(made.name()), "the benchmark did not run", made.name());

  std::optional<BackgroundReader> reader;
  if (options.reader) reader.emplace(context, *options.reader);

  const auto before = cpu_now(admin);
  const auto start = Load::Clock::now();
  load.run(producer, topic);
  (void)producer.flush(context.globals.timeout);
  const auto took = Load::Clock::now() - start;
  std::optional<BackgroundReader::Got> got;
  if (reader) got = reader->stop();
  const auto after = cpu_now(admin);
  (void)producer.close(Duration(1000));

  const auto acked = load.acked();
  Report report(context);
  add_result(report, BenchKind::produce, options,
             {.topic = made.name(),
              .records = acked.delivered,
              .failed = acked.failed,
              .bytes = acked.delivered * options.record_bytes,
              .took = took,
              .cpu = {after.client - before.client, after.brokers - before.brokers},
              .latency = &acked.latency,
              .latency_of = "intended send to acknowledgement",
              .reader = got});
  if (got && got->error)
    report.failure(client_failure(*got->error, "the reader stopped", *options.reader));
  if (acked.first_error)
    report.failure(client_failure(*acked.first_error,
                                  fmt::format("{} records were not delivered", acked.failed),
                                  made.name()));
  const auto exit = report.finish();
  return context.console.interrupted() ? Exit::interrupted : exit;
}

}  // namespace

Command bench_produce_command() {
  return {.path = "bench produce",
          .summary = "Measures how fast records are taken, or how long that takes at a rate",
          .details =
              "Prints records/s, MiB/s, latency percentiles from the intended send time to "
              "the\nacknowledgement, and the CPU time of this client and of the brokers.",
          .examples = {"mqctl bench produce --bytes 200MiB",
                       "mqctl bench produce --rate 50000 --record-bytes 100B --linger 0ms "
                       "--duration 10s -o json",
                       "mqctl bench produce --rate 20000 --reader orders --duration 30s"},
          .flags = bench_flags(BenchKind::produce),
          .item_shape = bench_shape(true, true),
          .changes = true,
          .run = bench};
}

}  // namespace mq::mqctl
