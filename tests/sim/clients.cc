#include "sim/clients.h"

#include <fmt/format.h>

#include <algorithm>

namespace mq::sim {
namespace {

using namespace std::chrono_literals;

void set_common(ClientConfig& config, BrokerMachine& machine, std::uint64_t number) {
  config.bootstrap = machine.bootstrap;
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

RecordLedger& SharedLedger::of(const model::PartitionId& partition) {
  auto& ledger = partitions[partition];
  if (!ledger) ledger = std::make_unique<RecordLedger>(partition.text());
  return *ledger;
}

const SharedLedger::Sent& SharedLedger::sending_of(const ValueName& record) const {
  const auto producer = sent.find(record.producer);
  require(producer != sent.end() && record.number < producer->second.size(),
          "LOG-7: a consumer got {}:{}, which nobody sent", record.producer, record.number);
  return producer->second[record.number];
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
      sent_(number, acks_ != Acks::none && random_.chance(0.75)),
      core_(runtime_, *network_, config()) {}

ProducerConfig SimProducer::config() {
  ProducerConfig config;
  set_common(config, machine_, sent_.producer());
  config.acks = acks_;
  config.enable_idempotence = sent_.idempotent();
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
  // Some keep several batches under way, which is when order could suffer.
  const bool busy = random_.chance(0.6);
  const auto pause_max = std::chrono::milliseconds(random_.between(1, busy ? 40 : 200));
  client::ProducerTopicPtr topic;
  while (sending_ && !machine_.failed()) {
    if (!topic) topic = co_await find_topic();
    const auto burst = random_.between(1, random_.chance(0.1) ? 200 : 5);
    for (std::uint64_t i = 0; i < burst && sending_ && topic; ++i) {
      if (!send_one(*topic)) topic = nullptr;
    }
    co_await runtime_.sleep_for(random_.duration(0ms, pause_max));
  }
  idle_ = true;
}

/// What has the name now; null when it has to stop first.
asio::awaitable<client::ProducerTopicPtr> SimProducer::find_topic() {
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
  co_return topic;
}

/// False when the topic was deleted.
bool SimProducer::send_one(client::ProducerTopic& topic) {
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
  if (appended == client::Appended::full) return true;
  if (appended == client::Appended::refused && refusal.code == Errc::unknown_topic_id) return false;
  require(appended == client::Appended::accepted, "producer {}: a record was refused: {}",
          sent_.producer(), refusal.message);
  sent_.accepted();
  padding_.push_back(padding);
  ledger_.sent[sent_.producer()].push_back({topic.id, runtime_.now()});
  return true;
}

void SimProducer::delivered(const DeliveryRange& range) {
  if (machine_.retries_forgotten) sent_.forgotten();
  for (std::size_t i = 0; i < range.count; ++i) {
    const std::uint64_t number = range.cookies[i];
    sent_.result(number, range.ok(), range.attempts > 1);
    const model::PartitionId partition{ledger_.sent_to({sent_.producer(), number}),
                                       range.partition};
    if (sent_.idempotent()) check_refusal(partition, range);
    if (!range.ok() || range.first_offset < 0) continue;
    const auto offset = range.first_offset + static_cast<std::int64_t>(i);
    if (ledger_.given_up(partition, offset, {sent_.producer(), number})) continue;
    ledger_.of(partition).acknowledged(offset,
                                       make_value(sent_.producer(), number, padding_.at(number)));
  }
}

/// What was acknowledged in a durable log without retention is known for a day: whatever happens
/// meanwhile, no later batch is refused for its sequence.
void SimProducer::check_refusal(const model::PartitionId& partition, const DeliveryRange& range) {
  if (range.ok()) known_in_.insert(partition);
  const bool may_forget = topic_.starts_with("memory") || ledger_.with_retention.contains(topic_) ||
                          machine_.producers_forgotten || ledger_.doubtful.contains(partition) ||
                          !known_in_.contains(partition);
  const Errc code = range.error.code;
  require(may_forget || (code != Errc::unknown_producer && code != Errc::out_of_order_sequence &&
                         code != Errc::duplicate_sequence && code != Errc::producer_fenced),
          "IDM-4: {}/{}: producer {} got {}", topic_, range.partition, sent_.producer(),
          range.error.message);
  const bool left_behind = range.error.message.find("before it was given up") != std::string::npos;
  require(may_forget || !left_behind || failed_in_.contains(partition),
          "IDM-2: {}/{}: producer {} got {}, and none was", topic_, range.partition,
          sent_.producer(), range.error.message);
  if (!range.ok()) failed_in_.insert(partition);
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
                         std::string topic, std::int32_t partitions)
    : machine_(machine),
      ledger_(ledger),
      random_(machine.random.fork()),
      runtime_(machine.simulator),
      network_(machine.network.join(fmt::format("consumer-{}", number), runtime_)),
      topic_(std::move(topic)),
      core_(runtime_, *network_, config()) {
  for (std::int32_t p = 0; p < partitions; ++p) partitions_.push_back({topic_, p});
}

ConsumerConfig SimConsumer::config() {
  ConsumerConfig config;
  set_common(config, machine_, 1000);
  config.max_poll_records = random_.between(1, 500);
  config.fetch_bytes = std::size_t{1} << (10 + random_.below(10));
  config.prefetch_bytes = std::size_t{1} << (12 + random_.below(8));
  config.fetch_wait = std::chrono::milliseconds(random_.between(10, 2000));
  if (machine_.racks) config.rack = rack_name(1 + partitions_.size() % 3);
  return config;
}

void SimConsumer::start() { machine_.spawn("consumer", run()); }

asio::awaitable<void> SimConsumer::run() {
  running_ = true;
  const auto started = co_await core_.start();
  require(started.has_value(), "a consumer found no broker: {}",
          started ? "" : started.error().message);
  while (!ending_ && !machine_.failed()) {
    if (assign_wanted_) co_await assign();
    take_all();
    if (rewind_wanted_ || (final_ && !rewound_)) co_await rewind();
    if (!final_ && random_.chance(0.02)) co_await seek_about();
    co_await runtime_.sleep_for(random_.duration(1ms, 50ms));
  }
  running_ = false;
}

/// Reads what has the name now.
asio::awaitable<void> SimConsumer::assign() {
  while (!ending_ && assign_wanted_) {
    std::map<TopicPartition, Start> starts;
    for (const auto& partition : partitions_) {
      Start start;
      start.kind = final_ || random_.chance(0.7) ? Start::earliest : Start::latest;
      starts[partition] = start;
    }
    generation_ = ledger_.generations[topic_];
    const bool from_start = final_;
    const auto assigned = co_await core_.assign(std::move(starts));
    if (assigned) {
      // If the name was seen to go meanwhile, nobody knows which topic this is.
      assign_wanted_ = generation_ != ledger_.generations[topic_];
      id_.reset();
      for (const auto& partition : partitions_) next_[partition.partition] = -1;
      found_.clear();
      rewound_ = from_start;
      continue;
    }
    // A topic may go between the look-up of its name and the question for its offsets, and of
    // several brokers one may not have heard of a new one yet.
    const bool behind = machine_.bootstrap.size() > 1;
    require(assigned.error().retriable || assigned.error().code == Errc::unknown_topic ||
                (assigned.error().code == Errc::unknown_topic_id && (topic_changed() || behind)),
            "a consumer cannot be assigned: {}", assigned.error().message);
    co_await runtime_.sleep_for(100ms);
  }
}

bool SimConsumer::topic_changed() {
  return ledger_.leaving(topic_) || generation_ != ledger_.generations[topic_];
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
  require(record.value.has_value(), "LOG-7: {}/{}: offset {} lost its value", record.topic,
          record.partition, record.offset);
  const auto value = base::as_text(*record.value);
  const auto name = parse_value(value);
  const base::Uuid& sent_to = ledger_.sent_to(name);
  if (!id_) id_ = sent_to;
  require(sent_to == *id_, "PAR-6: {}/{}: offset {} holds a record that was sent to {}, not to {}",
          record.topic, record.partition, record.offset, sent_to.hex(), id_->hex());
  const model::PartitionId partition{*id_, record.partition};

  auto& next = next_.at(record.partition);
  require(next < 0 || record.offset == next, "LOG-1: {}/{}: a consumer got offset {} after {}",
          record.topic, record.partition, record.offset, next - 1);
  next = record.offset + 1;
  const auto range = ledger_.range(partition);
  require(!range || ledger_.doubtful.contains(partition) || record.offset < range->second,
          "PAR-3: {}/{}: a consumer got offset {}, the confirmed end is {}", record.topic,
          record.partition, record.offset, range ? range->second : -1);
  // What was fetched before a loss may be taken after it, when its offset already means another.
  if (ledger_.losses[partition] == 0 && !ledger_.given_up(partition, record.offset, name))
    ledger_.of(partition).consumed(record.offset, value);
  if (rewound_) found_[record.partition].emplace(record.offset, std::string(value));
}

/// An error of one partition: the topic may be gone, and an offset may not be there (any more), and
/// each only for a reason.
void SimConsumer::failed(const Error& error) {
  if (error.code == Errc::unknown_topic_id) {
    require(topic_changed(), "a consumer of {} got {}", topic_, to_string(error));
    assign_wanted_ = true;
    return;
  }
  if (machine_.bits_change && error.code == Errc::partition_corrupt) {
    check_damage(error);
    rewind_wanted_ = true;  // it may be whole again
    return;
  }
  require(error.code == Errc::offset_out_of_range, "a consumer got {}", to_string(error));
  require(explains_out_of_range(),
          "LOG-11: a consumer got out of range at an offset that is there: {}", error.message);
  rewind_wanted_ = true;
}

/// What another replica has is waited for.
void SimConsumer::check_damage(const Error& error) const {
  if (!id_ || !ledger_.only_damaged) return;
  for (const auto& name : partitions_) {
    const auto fetched = fmt::format("{}/{} at", name.topic, name.partition);
    const auto sought = fmt::format("{}-{}:", name.topic, name.partition);
    const bool meant = error.message.find(fetched) != std::string::npos ||
                       error.message.find(sought) != std::string::npos;
    require(!meant || ledger_.only_damaged({*id_, name.partition}),
            "R12: a consumer got {}, and others have all of it", to_string(error));
  }
}

bool SimConsumer::explains_out_of_range() {
  if (!id_ || topic_changed()) return true;
  const auto positions = core_.positions();
  return std::ranges::any_of(partitions_, [&](const TopicPartition& name) {
    const model::PartitionId partition{*id_, name.partition};
    const auto range = ledger_.range(partition);  // the broker may have gone since it said so
    const auto position = positions.find(name);
    return !range || position == positions.end() || position->second < range->first ||
           position->second > range->second || ledger_.losses[partition] > 0 ||
           ledger_.doubtful.contains(partition);
  });
}

asio::awaitable<void> SimConsumer::rewind() {
  for (const auto& partition : partitions_) {
    const Start start;
    auto sought = co_await core_.seek(partition, start);
    while (!sought && sought.error().retriable && !ending_) {
      co_await runtime_.sleep_for(100ms);
      sought = co_await core_.seek(partition, start);
    }
    if (!sought) {
      if (!ending_) failed(sought.error());
      co_return;
    }
    next_[partition.partition] = -1;
    found_[partition.partition].clear();
  }
  rewind_wanted_ = false;
  if (final_) rewound_ = true;
}

asio::awaitable<void> SimConsumer::seek_about() {
  const auto& partition = partitions_[random_.below(partitions_.size())];
  Start start;
  if (random_.chance(0.5)) start.kind = Start::latest;
  const auto sought = co_await core_.seek(partition, start);
  if (sought) next_[partition.partition] = -1;
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
