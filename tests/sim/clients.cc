#include "sim/clients.h"

#include <fmt/format.h>

namespace mq::sim {
namespace {

using namespace std::chrono_literals;

void set_common(ClientConfig& config, BrokerMachine& machine, std::uint64_t number) {
  config.bootstrap = {"broker:9500"};
  config.client_id = fmt::format("client-{}", number);
  config.connect_timeout = 120s;
  config.request_timeout = 4s;
  config.log = [&machine](LogLevel, std::string_view text) {
    machine.simulator.trace("  client: " + std::string(text));
  };
}

Compression draw_compression(testing::SimRandom& random) {
  const auto dice = random.below(4);
  return dice < 2 ? Compression::none : dice == 2 ? Compression::lz4 : Compression::zstd;
}

}  // namespace

RecordLedger& SharedLedger::of(const std::string& topic, std::int32_t partition) {
  auto& ledger = partitions[TopicPartition{topic, partition}];
  if (!ledger) ledger = std::make_unique<RecordLedger>(fmt::format("{}/{}", topic, partition));
  return *ledger;
}

SimProducer::SimProducer(BrokerMachine& machine, SharedLedger& ledger, std::uint64_t number,
                         std::string topic, Acks acks)
    : machine_(machine),
      ledger_(ledger),
      random_(machine.random.fork()),
      runtime_(machine.simulator),
      network_(machine.network.join(fmt::format("producer-{}", number), runtime_)),
      topic_(std::move(topic)),
      acks_(acks),
      sent_(number),
      core_(runtime_, *network_, config()) {}

ProducerConfig SimProducer::config() {
  ProducerConfig config;
  set_common(config, machine_, sent_.producer());
  config.acks = acks_;
  config.linger = std::chrono::milliseconds(random_.below(20));
  config.delivery_timeout = 30s;
  config.buffer_bytes = std::size_t{16} << (10 + random_.below(4));
  config.batch_bytes = std::size_t{1} << (10 + random_.below(6));
  config.compression = draw_compression(random_);
  config.on_delivery = [this](const DeliveryRange& range) {
    machine_.checked([&] { delivered(range); });
  };
  return config;
}

void SimProducer::start() { machine_.spawn("producer", run()); }

asio::awaitable<void> SimProducer::run() {
  const auto started = co_await core_.start();
  require(started.has_value(), "producer {} found no broker: {}", sent_.producer(),
          started ? "" : started.error().message);
  client::ProducerTopicPtr topic;
  while (!topic && sending_) {
    auto found = co_await core_.topic(topic_);
    if (found) {
      topic = *found;
    } else {
      require(found.error().retriable || found.error().code == Errc::unknown_topic,
              "producer {}: {}: {}", sent_.producer(), topic_, found.error().message);
      co_await runtime_.sleep_for(100ms);
    }
  }
  const auto pause_max = std::chrono::milliseconds(random_.between(5, 200));
  while (sending_ && !machine_.failed()) {
    const auto burst = random_.between(1, random_.chance(0.1) ? 200 : 5);
    for (std::uint64_t i = 0; i < burst && sending_; ++i) send_one(*topic);
    co_await runtime_.sleep_for(random_.duration(0ms, pause_max));
  }
  idle_ = true;
}

void SimProducer::send_one(client::ProducerTopic& topic) {
  const std::size_t padding = random_.below(random_.chance(0.05) ? 3000 : 100);
  const std::string value = sent_.next_value(padding);
  const std::string key = fmt::format("{}", random_.below(50));
  client::AppendRequest request;
  request.record.value = base::as_bytes(value);
  if (random_.chance(0.5)) request.record.key = base::as_bytes(key);
  if (random_.chance(0.2))
    request.partition =
        topic.numbers[static_cast<std::size_t>(random_.below(topic.numbers.size()))];
  request.cookie = sent_.next_number();
  Error refusal;
  const auto appended = core_.append(topic, request, refusal);
  if (appended == client::Appended::full) return;
  require(appended == client::Appended::accepted, "producer {}: a record was refused: {}",
          sent_.producer(), refusal.message);
  sent_.accepted();
  padding_.push_back(padding);
}

void SimProducer::delivered(const DeliveryRange& range) {
  for (std::size_t i = 0; i < range.count; ++i) {
    const std::uint64_t number = range.cookies[i];
    sent_.result(number, range.ok(), range.attempts > 1);
    if (!range.ok() || range.first_offset < 0) continue;
    ledger_.of(topic_, range.partition)
        .acknowledged(range.first_offset + static_cast<std::int64_t>(i),
                      make_value(sent_.producer(), number, padding_.at(number)));
  }
}

void SimProducer::stop() { machine_.spawn("producer stop", run_stop()); }

asio::awaitable<void> SimProducer::run_stop() {
  sending_ = false;
  while (!idle_) co_await runtime_.sleep_for(10ms);
  co_await core_.stop();
  require(sent_.without_result() == 0, "CLI-1: producer {} stopped and owes {} results",
          sent_.producer(), sent_.without_result());
  stopped_ = true;
}

SimConsumer::SimConsumer(BrokerMachine& machine, SharedLedger& ledger, std::uint64_t number,
                         std::vector<TopicPartition> partitions)
    : machine_(machine),
      ledger_(ledger),
      random_(machine.random.fork()),
      runtime_(machine.simulator),
      network_(machine.network.join(fmt::format("consumer-{}", number), runtime_)),
      partitions_(std::move(partitions)),
      core_(runtime_, *network_, config()) {}

ConsumerConfig SimConsumer::config() {
  ConsumerConfig config;
  set_common(config, machine_, 1000);
  config.max_poll_records = random_.between(1, 500);
  config.fetch_bytes = std::size_t{1} << (10 + random_.below(10));
  config.prefetch_bytes = std::size_t{1} << (12 + random_.below(8));
  config.fetch_wait = std::chrono::milliseconds(random_.between(10, 2000));
  return config;
}

void SimConsumer::start() { machine_.spawn("consumer", run()); }

asio::awaitable<void> SimConsumer::run() {
  running_ = true;
  const auto started = co_await core_.start();
  require(started.has_value(), "a consumer found no broker: {}",
          started ? "" : started.error().message);
  while (!ending_) {
    std::map<TopicPartition, Start> starts;
    for (const auto& partition : partitions_) {
      Start start;
      start.kind = random_.chance(0.7) ? Start::earliest : Start::latest;
      starts[partition] = start;
      next_[partition] = -1;
    }
    const auto assigned = co_await core_.assign(std::move(starts));
    if (assigned) break;
    require(assigned.error().retriable || assigned.error().code == Errc::unknown_topic,
            "a consumer cannot be assigned: {}", assigned.error().message);
    co_await runtime_.sleep_for(100ms);
  }
  while (!ending_ && !machine_.failed()) {
    take_all();
    if (final_ && !rewound_) co_await rewind();
    if (!final_ && random_.chance(0.02)) co_await seek_about();
    co_await runtime_.sleep_for(random_.duration(1ms, 50ms));
  }
  running_ = false;
}

void SimConsumer::take_all() {
  while (auto batch = core_.take()) {
    if (!*batch) {
      failed(batch->error());
      return;
    }
    for (const auto& record : **batch) take(record);
  }
}

void SimConsumer::take(const RecordView& record) {
  const TopicPartition partition{std::string(record.topic), record.partition};
  auto& next = next_.at(partition);
  require(next < 0 || record.offset == next, "LOG-1: {}/{}: a consumer got offset {} after {}",
          partition.topic, partition.partition, record.offset, next - 1);
  next = record.offset + 1;
  const auto range = ledger_.range(partition);
  require(!range || ledger_.doubtful.contains(partition) || record.offset < range->second,
          "PAR-3: {}/{}: a consumer got offset {}, the confirmed end is {}", partition.topic,
          partition.partition, record.offset, range ? range->second : -1);
  require(record.value.has_value(), "LOG-7: {}/{}: offset {} lost its value", partition.topic,
          partition.partition, record.offset);
  const auto value = base::as_text(*record.value);
  (void)parse_value(value);
  // What was fetched before a loss may be taken after it, when its offset already means another.
  if (ledger_.losses[partition] == 0)
    ledger_.of(partition.topic, partition.partition).consumed(record.offset, value);
  if (rewound_) found_[partition].emplace(record.offset, std::string(value));
}

/// An error of one partition: only an offset that is not there (any more) may be, and only for a
/// reason.
void SimConsumer::failed(const Error& error) {
  require(error.code == Errc::offset_out_of_range, "a consumer got {}", to_string(error));
  // The broker may have gone since it said so.
  bool explained = false;
  const auto positions = core_.positions();
  for (const auto& partition : partitions_) {
    const auto range = ledger_.range(partition);
    const auto position = positions.find(partition);
    explained = explained || !range || position == positions.end() ||
                position->second < range->first || position->second > range->second;
    explained = explained || ledger_.losses[partition] > 0;
    next_[partition] = -1;
  }
  require(explained, "LOG-11: a consumer got out of range at an offset that is there: {}",
          error.message);
  machine_.spawn("consumer back to start", rewind());
}

asio::awaitable<void> SimConsumer::rewind() {
  for (const auto& partition : partitions_) {
    const Start start;
    auto sought = co_await core_.seek(partition, start);
    while (!sought && !ending_) {
      co_await runtime_.sleep_for(100ms);
      sought = co_await core_.seek(partition, start);
    }
    next_[partition] = -1;
    found_[partition].clear();
  }
  if (final_) rewound_ = true;
}

asio::awaitable<void> SimConsumer::seek_about() {
  const auto& partition = partitions_[random_.below(partitions_.size())];
  Start start;
  if (random_.chance(0.5)) start.kind = Start::latest;
  const auto sought = co_await core_.seek(partition, start);
  if (sought) next_[partition] = -1;
}

void SimConsumer::read_all_again() { final_ = true; }

void SimConsumer::stop() { machine_.spawn("consumer stop", run_stop()); }

asio::awaitable<void> SimConsumer::run_stop() {
  ending_ = true;
  while (running_) co_await runtime_.sleep_for(10ms);
  co_await core_.stop();
  stopped_ = true;
}

}  // namespace mq::sim
