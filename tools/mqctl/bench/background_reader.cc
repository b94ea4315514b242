#include "mqctl/bench/background_reader.h"

#include <map>
#include <vector>

#include "mqctl/cli/client.h"

namespace mq::mqctl {
namespace {

constexpr const char* kNoBenchmark = "the benchmark did not run";

Consumer make_consumer(const Context& context) {
  ConsumerConfig config;
  static_cast<ClientConfig&>(config) = client_config(context);
  return connected(context, Consumer::create(std::move(config)));
}

}  // namespace

BackgroundReader::BackgroundReader(const Context& context, const std::string& topic)
    : consumer_(make_consumer(context)) {
  std::vector<TopicPartition> partitions;
  for (const auto partition : take(consumer_.partitions(topic), kNoBenchmark, topic))
    partitions.push_back({topic, partition});
  std::map<TopicPartition, Start> starts;
  for (const auto& [partition, range] : take(consumer_.offsets(partitions), kNoBenchmark, topic)) {
    starts.emplace(partition, Start::at(range.start));
    records_max_ += static_cast<std::uint64_t>(range.end - range.start);
  }
  if (auto assigned = consumer_.assign(starts); !assigned)
    throw_client(assigned.error(), kNoBenchmark, topic);
  thread_ = std::thread([this] { read(); });
}

void BackgroundReader::read() {
  const auto start = std::chrono::steady_clock::now();
  while (!stopping_ && got_.records < records_max_) {
    const auto batch = consumer_.poll(Duration(100));
    if (!batch && !batch.error().retriable) {
      got_.error = batch.error();
      break;
    }
    if (!batch) continue;
    got_.records += batch->size();
    for (const auto& record : *batch)
      got_.bytes +=
          (record.value ? record.value->size() : 0) + (record.key ? record.key->size() : 0);
    got_.took = std::chrono::steady_clock::now() - start;
  }
}

BackgroundReader::Got BackgroundReader::stop() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
  return got_;
}

}  // namespace mq::mqctl
