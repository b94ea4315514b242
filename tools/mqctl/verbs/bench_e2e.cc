#include <fmt/format.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "mq/consumer.h"
#include "mqctl/bench/bench_report.h"
#include "mqctl/bench/load.h"
#include "mqctl/cli/client.h"
#include "mqctl/verbs/verbs.h"

namespace mq::mqctl {
namespace {

/// Reads stamped records in a thread of its own and times them from the intended send to the return
/// of poll(). The first record is the warm-up: it says that reading has begun, and is not counted.
class Receiver {
 public:
  using Clock = Load::Clock;

  Receiver(Consumer consumer, std::function<bool()> interrupted)
      : consumer_(std::move(consumer)), interrupted_(std::move(interrupted)) {
    thread_ = std::thread([this] { run(); });
  }
  ~Receiver() {
    stop_ = true;
    consumer_.wakeup();
    if (thread_.joinable()) thread_.join();
  }
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  /// Waits until this many records have come, the warm-up included; false when they did not.
  bool wait_for(std::uint64_t count, std::chrono::milliseconds at_most) {
    const auto deadline = Clock::now() + at_most;
    while (received_ < count) {
      if (Clock::now() > deadline || interrupted_() || failed_) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }
  /// Ends the thread; the rest is read afterwards.
  void stop() {
    stop_ = true;
    consumer_.wakeup();
    if (thread_.joinable()) thread_.join();
  }
  [[nodiscard]] std::uint64_t received() const { return received_; }
  [[nodiscard]] const Histogram& latency() const { return latency_; }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  void take(const RecordView& record, std::uint64_t now) {
    std::uint64_t intended = 0;
    if (!record.value || record.value->size() < sizeof intended) return;
    std::memcpy(&intended, record.value->data(), sizeof intended);
    if (received_ > 0)
      latency_.add(std::chrono::nanoseconds(static_cast<std::int64_t>(now - intended)));
    ++received_;
  }

  void run() {
    while (!stop_) {
      const auto batch = consumer_.poll(Duration(250));
      const auto now = Load::stamp(Clock::now());
      if (!batch) {
        if (batch.error().retriable) continue;
        error_ = batch.error();
        failed_ = true;
        return;
      }
      for (const auto& record : *batch) take(record, now);
    }
  }

  Consumer consumer_;
  const std::function<bool()> interrupted_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> failed_{false};
  std::atomic<std::uint64_t> received_{0};
  Histogram latency_;           // of the thread until stop()
  std::optional<Error> error_;  // likewise
  std::thread thread_;
};

Consumer make_consumer(const Context& context, const std::string& topic) {
  ConsumerConfig config;
  static_cast<ClientConfig&>(config) = client_config(context);
  auto consumer = connected(context, Consumer::create(std::move(config)));
  const std::string what = "the benchmark did not run";
  std::vector<TopicPartition> partitions;
  for (const auto partition : take(consumer.partitions(topic), what, topic))
    partitions.push_back({topic, partition});
  std::map<TopicPartition, Start> starts;
  for (const auto& [partition, range] : take(consumer.offsets(partitions), what, topic))
    starts.emplace(partition, Start::at(range.end));
  if (auto assigned = consumer.assign(starts); !assigned)
    throw_client(assigned.error(), what, topic);
  return consumer;
}

/// One record there before the clock starts: connections, fetches and page faults are behind us.
void warm_up(const Context& context, Producer& producer, const TopicHandle& topic,
             Receiver& receiver) {
  const std::uint64_t zero = 0;
  const auto sent = producer.send(topic, std::nullopt,
                                  Bytes(reinterpret_cast<const std::byte*>(&zero), sizeof zero), {},
                                  Load::stamp(Load::Clock::now()));
  if (!sent) throw_client(sent.error(), "the benchmark did not run", topic.name());
  (void)producer.flush(context.globals.timeout);
  if (!receiver.wait_for(1, context.globals.timeout))
    throw Failed(make_failure(protocol::WireError::timed_out, "the benchmark did not run",
                              "a first record was sent and did not arrive"));
}

Exit bench(Context& context) {
  const auto options = bench_options(context, BenchKind::e2e);
  auto admin = connect_admin(context);
  const BenchTopic made(context, admin, options);
  Load load(options, true, context.console.interrupted);
  // No delivery callback: what arrives is counted where it arrives, and one thread less wakes up.
  auto producer = connected(context, Producer::create(bench_producer_config(context, options)));
  const auto topic = take(producer.topic(made.name()), "the benchmark did not run", made.name());
  Receiver receiver(make_consumer(context, made.name()), context.console.interrupted);
  warm_up(context, producer, topic, receiver);

  const auto before = cpu_now(admin);
  const auto start = Load::Clock::now();
  load.run(producer, topic);
  const bool complete = receiver.wait_for(load.sent() + 1, context.globals.timeout);
  const auto took = Load::Clock::now() - start;
  const auto after = cpu_now(admin);
  receiver.stop();
  (void)producer.close(Duration(1000));

  const auto arrived = receiver.received() - 1;
  Report report(context);
  add_result(report, BenchKind::e2e, options,
             {.topic = made.name(),
              .records = arrived,
              .failed = load.sent() > arrived ? load.sent() - arrived : 0,
              .bytes = arrived * options.record_bytes,
              .took = took,
              .cpu = {after.client - before.client, after.brokers - before.brokers},
              .latency = &receiver.latency(),
              .latency_of = "intended send to return of poll"});
  if (receiver.error())
    report.failure(client_failure(*receiver.error(), "reading stopped", made.name()));
  else if (!complete && !context.console.interrupted())
    report.failure(make_failure(
        protocol::WireError::timed_out,
        fmt::format("{} of {} records did not arrive", load.sent() - arrived, load.sent()),
        fmt::format("waited {} ms after the last was sent", context.globals.timeout.count())));
  const auto exit = report.finish();
  return context.console.interrupted() ? Exit::interrupted : exit;
}

}  // namespace

Command bench_e2e_command() {
  return {.path = "bench e2e",
          .summary = "Measures the time from sending a record to reading it, at a rate",
          .details =
              "Producer and consumer are in this one process, on one clock. The latency of "
              "a record runs from\nthe time at which it was due, so a stall shows in all "
              "that it delays.",
          .examples = {"mqctl bench e2e --rate 1000 --duration 10s",
                       "mqctl bench e2e --rate 10000 --records 100000 -o json"},
          .flags = bench_flags(BenchKind::e2e),
          .item_shape = bench_shape(true),
          .changes = true,
          .run = bench};
}

}  // namespace mq::mqctl
