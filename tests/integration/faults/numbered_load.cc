#include "integration/faults/numbered_load.h"

#include <iostream>

#include "integration/faults/client_support.h"

namespace mq::faults {

using namespace std::chrono_literals;

NumberedLoad::NumberedLoad(const std::string& address, std::string topic, std::int32_t partitions)
    : topic_(std::move(topic)), partitions_(partitions) {
  auto config = quiet<ProducerConfig>(address);
  config.linger = 1ms;
  config.request_timeout = 2s;
  config.delivery_timeout = 120s;
  config.batch_bytes = 8 << 10;
  producer_ = std::make_unique<Producer>(must(Producer::create(std::move(config))));
  thread_ = std::thread([this] { run(); });
}

void NumberedLoad::finish() {
  if (!thread_.joinable()) return;
  stop_ = true;
  thread_.join();
  if (const auto closed = producer_->close(120s); !closed)
    std::cerr << topic_ << ": " << to_string(closed.error()) << "\n";
}

NumberedLoad::Numbers NumberedLoad::acknowledged(std::int32_t partition) {
  std::lock_guard lock(mutex_);
  return acknowledged_[partition];
}

std::uint64_t NumberedLoad::results() {
  std::lock_guard lock(mutex_);
  return results_;
}

std::uint64_t NumberedLoad::failed() {
  std::lock_guard lock(mutex_);
  return failed_;
}

void NumberedLoad::run() {
  for (std::uint64_t n = 0; !stop_; ++n) {
    if (producer_->pending() > 2000) std::this_thread::sleep_for(1ms);
    const std::string value = std::to_string(n) + ":" + std::string(n * 7919 % 700, 'x');
    const auto partition = static_cast<std::int32_t>(n % static_cast<std::uint64_t>(partitions_));
    const auto sent =
        producer_->send(Record(topic_).partition(partition).value(value),
                        [this, n](const Result<Delivery>& result) { done(n, result); });
    if (sent) ++accepted_;
    if (n % 16 == 0) std::this_thread::sleep_for(500us);
  }
}

void NumberedLoad::done(std::uint64_t n, const Result<Delivery>& result) {
  std::lock_guard lock(mutex_);
  ++results_;
  if (result) {
    acknowledged_[result->partition][result->offset] = n;
  } else if (failed_++ == 0) {
    std::cerr << topic_ << ": record " << n << ": " << to_string(result.error()) << "\n";
  }
}

NumberedLoad::Numbers read_numbers(const std::string& address, const TopicPartition& partition) {
  auto consumer = must(Consumer::create(quiet<ConsumerConfig>(address)));
  if (const auto assigned = consumer.assign({{partition, Start{}}}); !assigned)
    throw std::runtime_error(to_string(assigned.error()));
  const auto end = must(consumer.offsets()).at(partition).end;
  NumberedLoad::Numbers numbers;
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  for (std::int64_t next = 0; next < end;) {
    if (std::chrono::steady_clock::now() > deadline)
      throw std::runtime_error(partition.topic + " cannot be read to its end");
    for (const auto& record : must(consumer.poll(1s))) {
      if (record.offset < next) throw std::runtime_error("an offset came twice");
      numbers[record.offset] = std::stoull(std::string(as_text(*record.value)));
      next = record.offset + 1;
    }
  }
  return numbers;
}

}  // namespace mq::faults
