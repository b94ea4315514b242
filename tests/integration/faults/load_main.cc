// fault_load BROKERS TOPICS PARTITIONS WRITERS RATE [FIRST]: writers with idempotent producers
// (acks=all), each sending RATE records a second to all partitions of the topics in turn, and one
// consumer of all of it, until SIGTERM; then waits for every result. fault_load BROKERS TOPICS
// PARTITIONS drain: reads everything there is.
//
// Stdout, times in microseconds of the monotonic clock:
//   a TOPIC PARTITION OFFSET WRITER NUMBER START END   acknowledged
//   u TOPIC PARTITION WRITER NUMBER START END ERROR    failed, and may be stored all the same
//   f TOPIC PARTITION WRITER NUMBER START END ERROR    failed, and is not stored
//   w WRITER COUNT                                     so many were sent, and each has a line above
//   r TOPIC PARTITION OFFSET WRITER NUMBER TIME        read
//   b TOPIC PARTITION OFFSET                           read, and sent by nobody
//   s TOPIC PARTITION OFFSET                           reading begins there
//   e TOPIC PARTITION ERROR                            a partition cannot be read on
//   l TOPIC PARTITION START END                        drain: what there is
//   g WRITER TIME TEXT                                 a line of a producer's log
//   x                                                  all is said
//
// Environment: MQ_LOAD_PLAIN=1: producers without idempotence. MQ_LOAD_ONE=1: a writer waits for
// the result of each record before it sends the next one to that partition.

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <thread>

#include "integration/faults/client_support.h"
#include "integration/faults/load_history.h"

namespace mq::faults {
namespace {

using namespace std::chrono_literals;

std::atomic<bool> stopping{false};

struct Target {
  std::vector<std::string> brokers;
  std::vector<std::string> topics;
  std::int32_t partitions = 1;

  [[nodiscard]] TopicPartition at(std::uint64_t number) const {
    const auto count = static_cast<std::uint64_t>(partitions);
    return {topics[number % topics.size()],
            static_cast<std::int32_t>(number / topics.size() % count)};
  }
  [[nodiscard]] std::uint64_t all() const {
    return topics.size() * static_cast<std::uint64_t>(partitions);
  }
};

template <class Config>
Config config_for(const Target& target) {
  auto config = quiet<Config>(target.brokers[0]);
  config.bootstrap = target.brokers;
  config.connect_timeout = 60s;
  config.request_timeout = 5s;
  return config;
}

bool asked_for(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr && std::string_view(text) == "1";
}

class Writer {
 public:
  Writer(int number, int rate, const Target& target, LoadHistory& history)
      : number_(number),
        rate_(rate),
        target_(target),
        history_(history),
        under_way_(asked_for("MQ_LOAD_ONE") ? target.all() : 0) {
    auto config = config_for<ProducerConfig>(target);
    config.delivery_timeout = 90s;
    config.linger = 5ms;
    config.batch_bytes = 64 << 10;
    config.compression = Compression::none;
    config.enable_idempotence = !asked_for("MQ_LOAD_PLAIN");
    config.log = [this](LogLevel, std::string_view text) {
      history_.say("g {} {} {}", number_, monotonic_us(), text.substr(0, text.find('\n')));
    };
    producer_.emplace(must(Producer::create(std::move(config))));
    thread_ = std::thread([this] { run(); });
  }

  void finish() {
    thread_.join();
    (void)producer_->close(100s);
    history_.say("w {} {}", number_, sent_);
  }

 private:
  void run() {
    const auto begun = std::chrono::steady_clock::now();
    for (; !stopping; ++sent_) {
      std::this_thread::sleep_until(begun + sent_ * 1'000'000us / rate_);
      // After a long outage what waits is sent first.
      while (producer_->pending() > 20'000 && !stopping) std::this_thread::sleep_for(10ms);
      const auto turn = sent_ + static_cast<std::uint64_t>(number_);
      const auto to = target_.at(turn);
      if (!wait_for_turn(turn)) break;
      const LoadKey key{number_, sent_};
      const auto start = monotonic_us();
      const auto accepted =
          producer_->send(Record(to.topic).partition(to.partition).value(value_of(key)),
                          [this, to, key, start, turn](const Result<Delivery>& result) {
                            if (result)
                              acknowledged(*result, key, start);
                            else
                              failed(to, key, start, result.error());
                            has_result(turn);
                          });
      if (!accepted) {
        failed(to, key, start, accepted.error());
        has_result(turn);
      }
    }
  }
  /// Where one record is under way at a time: false when it is over meanwhile.
  bool wait_for_turn(std::uint64_t turn) {
    if (under_way_.empty()) return true;
    auto& busy = under_way_[turn % under_way_.size()];
    while (busy && !stopping) std::this_thread::sleep_for(1ms);
    return !busy.exchange(true);
  }
  void has_result(std::uint64_t turn) {
    if (!under_way_.empty()) under_way_[turn % under_way_.size()] = false;
  }
  void acknowledged(const Delivery& delivery, const LoadKey& key, std::int64_t start) {
    history_.say("a {} {} {} {} {} {} {}", delivery.topic, delivery.partition, delivery.offset,
                 key.writer, key.number, start, monotonic_us());
  }
  void failed(const TopicPartition& to, const LoadKey& key, std::int64_t start, const Error& why) {
    history_.say("{} {} {} {} {} {} {} {}", why.maybe_applied ? 'u' : 'f', to.topic, to.partition,
                 key.writer, key.number, start, monotonic_us(), errc_name(why.code));
  }

  int number_;
  int rate_;
  const Target& target_;
  LoadHistory& history_;
  std::optional<Producer> producer_;
  std::uint64_t sent_ = 0;
  std::vector<std::atomic<bool>> under_way_;  // of each partition
  std::thread thread_;
};

void say_read(LoadHistory& history, const RecordView& record) {
  const auto key = record.value ? key_of(as_text(*record.value)) : std::nullopt;
  if (!key) return history.say("b {} {} {}", record.topic, record.partition, record.offset);
  history.say("r {} {} {} {} {} {}", record.topic, record.partition, record.offset, key->writer,
              key->number, monotonic_us());
}

std::map<TopicPartition, Start> from_the_start(const Target& target) {
  std::map<TopicPartition, Start> all;
  for (std::uint64_t n = 0; n < target.all(); ++n) all[target.at(n)] = Start{};
  return all;
}

/// While brokers are away this takes several attempts.
void assign(Consumer& consumer, const Target& target) {
  const auto deadline = std::chrono::steady_clock::now() + 90s;
  for (;;) {
    const auto assigned = consumer.assign(from_the_start(target));
    if (assigned) return;
    if (stopping || std::chrono::steady_clock::now() > deadline)
      throw std::runtime_error(to_string(assigned.error()));
    std::this_thread::sleep_for(200ms);
  }
}

void follow(const Target& target, LoadHistory& history) {
  auto consumer = must(Consumer::create(config_for<ConsumerConfig>(target)));
  assign(consumer, target);
  for (const auto& [partition, offset] : consumer.positions())
    history.say("s {} {} {}", partition.topic, partition.partition, offset);
  while (!stopping) {
    const auto batch = consumer.poll(250ms);
    if (!batch) {
      if (batch.error().retriable) continue;
      // The message names partition and offset.
      history.say("e - -1 {}", to_string(batch.error()));
      if (batch.error().fatal) return;
      continue;
    }
    for (const auto& record : *batch) say_read(history, record);
  }
}

void load(const Target& target, int writers, int rate, int first, LoadHistory& history) {
  std::vector<std::unique_ptr<Writer>> all;
  for (int n = 0; n < writers; ++n)
    all.push_back(std::make_unique<Writer>(first + n, rate, target, history));
  std::thread reader([&] {
    try {
      follow(target, history);
    } catch (const std::exception& error) {
      history.say("e - -1 {}", error.what());
    }
  });
  while (!stopping) {
    std::this_thread::sleep_for(50ms);
    history.flush();
  }
  for (auto& writer : all) writer->finish();
  reader.join();
}

void drain(const Target& target, LoadHistory& history) {
  auto consumer = must(Consumer::create(config_for<ConsumerConfig>(target)));
  assign(consumer, target);
  const auto deadline = std::chrono::steady_clock::now() + 90s;
  std::optional<std::map<TopicPartition, OffsetRange>> ranges;
  // A leader of late says the end once all before it is confirmed.
  while (!ranges) {
    auto asked = consumer.offsets();
    if (asked)
      ranges.emplace(std::move(*asked));
    else if (std::chrono::steady_clock::now() > deadline)
      throw std::runtime_error(to_string(asked.error()));
    else
      std::this_thread::sleep_for(200ms);
  }
  std::map<TopicPartition, std::int64_t> next;
  std::size_t left = 0;
  for (const auto& [partition, range] : *ranges) {
    history.say("l {} {} {} {}", partition.topic, partition.partition, range.start, range.end);
    history.say("s {} {} {}", partition.topic, partition.partition, range.start);
    if (range.end > range.start) ++left;
  }
  while (left > 0) {
    if (std::chrono::steady_clock::now() > deadline)
      throw std::runtime_error("the end is not reached");
    const auto batch = consumer.poll(1s);
    if (!batch) {
      if (batch.error().retriable) continue;
      throw std::runtime_error(to_string(batch.error()));
    }
    for (const auto& record : *batch) {
      const TopicPartition partition{std::string(record.topic), record.partition};
      const auto end = (*ranges)[partition].end;
      if (record.offset < end) say_read(history, record);
      if (record.offset == end - 1) --left;
    }
  }
}

std::vector<std::string> parts(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> all;
  for (std::string part; std::getline(in, part, ',');) all.push_back(part);
  return all;
}

int run(int count, char** words) {
  if (count < 5) {
    std::cerr << "fault_load BROKERS TOPICS PARTITIONS drain|WRITERS RATE [FIRST]\n";
    return 2;
  }
  const Target target{parts(words[1]), parts(words[2]), std::atoi(words[3])};
  LoadHistory history;
  try {
    if (count == 5) {
      drain(target, history);
    } else {
      load(target, std::atoi(words[4]), std::atoi(words[5]), count > 6 ? std::atoi(words[6]) : 0,
           history);
    }
  } catch (const std::exception& error) {
    history.flush();
    std::cerr << error.what() << "\n";
    return 1;
  }
  history.say("x");
  history.flush();
  return 0;
}

}  // namespace
}  // namespace mq::faults

int main(int count, char** words) {
  std::signal(SIGTERM, [](int) { mq::faults::stopping = true; });
  return mq::faults::run(count, words);
}
