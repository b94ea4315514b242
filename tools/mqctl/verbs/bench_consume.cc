#include <fmt/format.h>

#include <algorithm>

#include "mq/consumer.h"
#include "mqctl/bench/bench_report.h"
#include "mqctl/bench/load.h"
#include "mqctl/cli/client.h"
#include "mqctl/verbs/verbs.h"

namespace mq::mqctl {
namespace {

/// Fills the topic that the benchmark made.
void preload(const Context& context, const BenchOptions& options, const std::string& name) {
  Load load(options, false, context.console.interrupted);
  auto config = bench_producer_config(context, options);
  config.on_delivery = [&load](const DeliveryRange& range) { load.on_delivery(range); };
  auto producer = connected(context, Producer::create(std::move(config)));
  const auto topic = take(producer.topic(name), "the benchmark did not run", name);
  load.run(producer, topic);
  if (auto flushed = producer.flush(context.globals.timeout); !flushed)
    throw_client(flushed.error(), "the benchmark did not run", name);
  if (const auto acked = load.acked(); acked.first_error)
    throw_client(*acked.first_error, "the benchmark did not run", name);
}

struct Goal {
  std::map<TopicPartition, Start> starts;
  std::uint64_t records = 0;
};

/// From the start of each partition; as many records as there are now, or as asked for.
Goal goal_of(Consumer& consumer, const BenchOptions& options, const std::string& topic) {
  std::vector<TopicPartition> partitions;
  for (const auto partition : take(consumer.partitions(topic), "the benchmark did not run", topic))
    partitions.push_back({topic, partition});
  Goal goal;
  for (const auto& [partition, range] :
       take(consumer.offsets(partitions), "the benchmark did not run", topic)) {
    goal.starts.emplace(partition, Start::at(range.start));
    goal.records += static_cast<std::uint64_t>(range.end - range.start);
  }
  if (options.records) goal.records = std::min(goal.records, *options.records);
  return goal;
}

struct Read {
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;
};

Read read(const Context& context, Consumer& consumer, const BenchOptions& options, const Goal& goal,
          Load::Clock::time_point start) {
  Read read;
  auto last = start;
  const auto bytes_max = options.bytes.value_or(UINT64_MAX);
  while (read.records < goal.records && read.bytes < bytes_max) {
    const auto now = Load::Clock::now();
    if (context.console.interrupted() || (options.duration && now - start >= *options.duration))
      break;
    const auto batch = consumer.poll(Duration(250));
    if (!batch && (!batch.error().retriable || now - last > context.globals.timeout))
      throw_client(batch.error(), "reading stopped");
    if (!batch || batch->empty()) continue;
    last = now;
    read.records += batch->size();
    for (const auto& record : *batch)
      read.bytes +=
          (record.value ? record.value->size() : 0) + (record.key ? record.key->size() : 0);
  }
  return read;
}

Exit bench(Context& context) {
  const auto options = bench_options(context, BenchKind::consume);
  auto admin = connect_admin(context);
  const BenchTopic made(context, admin, options);
  if (made.own()) preload(context, options, made.name());
  ConsumerConfig config;
  static_cast<ClientConfig&>(config) = client_config(context);
  auto consumer = connected(context, Consumer::create(std::move(config)));
  const auto goal = goal_of(consumer, options, made.name());

  const auto before = cpu_now(admin);
  const auto start = Load::Clock::now();
  if (auto assigned = consumer.assign(goal.starts); !assigned)
    throw_client(assigned.error(), "the benchmark did not run", made.name());
  const auto got = read(context, consumer, options, goal, start);
  const auto took = Load::Clock::now() - start;
  const auto after = cpu_now(admin);

  Report report(context);
  add_result(report, BenchKind::consume, options,
             {.topic = made.name(),
              .records = got.records,
              .bytes = got.bytes,
              .took = took,
              .cpu = {after.client - before.client, after.brokers - before.brokers}});
  const auto exit = report.finish();
  return context.console.interrupted() ? Exit::interrupted : exit;
}

}  // namespace

Command bench_consume_command() {
  return {.path = "bench consume",
          .summary = "Measures how fast the records of a topic are read",
          .details =
              "Without --topic it writes them first (--records or --bytes, else 1 GiB), then "
              "reads them back.\nRecord size, batch and acks concern that writing only.",
          .examples = {"mqctl bench consume --bytes 200MiB", "mqctl bench consume --topic orders"},
          .flags = bench_flags(BenchKind::consume),
          .item_shape = bench_shape(false),
          .changes = true,
          .run = bench};
}

}  // namespace mq::mqctl
