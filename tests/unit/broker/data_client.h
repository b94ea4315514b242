#pragma once

#include "broker_world.h"
#include "protocol/list_offsets.h"

namespace mq::testing {

/// Produce and fetch requests in few words.
struct ProduceItem {
  model::PartitionId partition;
  std::uint64_t sequence = 0;
  std::string batch = make_batch(1);
};

inline protocol::ProduceRequest produce_request(const std::vector<ProduceItem>& items,
                                                protocol::Acks acks = protocol::Acks::all) {
  protocol::ProduceRequest request;
  request.acks = acks;
  for (const auto& item : items) {
    protocol::ProduceEntry entry;
    entry.partition = item.partition;
    entry.batch_bytes = static_cast<std::uint32_t>(item.batch.size());
    entry.sequence = item.sequence;
    request.entries.push_back(entry);
  }
  return request;
}

inline std::string payload_of(const std::vector<ProduceItem>& items) {
  std::string payload;
  for (const auto& item : items) payload += item.batch;
  return payload;
}

inline std::uint32_t send_produce(RawClient& client, const std::vector<ProduceItem>& items,
                                  protocol::Acks acks = protocol::Acks::all) {
  const std::uint8_t flags = acks == protocol::Acks::none ? protocol::kFrameNoAnswer : 0;
  return client.send(protocol::ApiKey::produce, protocol::encode(produce_request(items, acks)),
                     payload_of(items), flags);
}

inline std::vector<protocol::ProduceResult> results_of(const Answer& answer) {
  auto response = protocol::decode_produce_response(answer.header_bytes());
  if (!response) throw std::runtime_error("a produce answer that does not parse");
  return response->results;
}

inline std::vector<protocol::ProduceResult> produce(RawClient& client,
                                                    const std::vector<ProduceItem>& items,
                                                    protocol::Acks acks = protocol::Acks::all) {
  send_produce(client, items, acks);
  auto answer = client.receive();
  if (!answer) throw std::runtime_error("no answer to produce");
  return results_of(*answer);
}

struct FetchAsk {
  std::vector<protocol::FetchEntry> entries;
  std::uint32_t wait_ms = 0;
  std::uint32_t bytes_min = 1;
  std::uint32_t bytes_max = 8U << 20;
};

inline protocol::FetchEntry from(const model::PartitionId& partition, std::int64_t offset,
                                 std::uint32_t bytes_max = 4U << 20) {
  protocol::FetchEntry entry;
  entry.partition = partition;
  entry.offset = model::Offset(offset);
  entry.bytes_max = bytes_max;
  return entry;
}

inline std::uint32_t send_fetch(RawClient& client, const FetchAsk& ask) {
  protocol::FetchRequest request;
  request.wait_ms = ask.wait_ms;
  request.bytes_min = ask.bytes_min;
  request.bytes_max = ask.bytes_max;
  request.entries = ask.entries;
  return client.send(protocol::ApiKey::fetch, protocol::encode(request));
}

struct Fetched {
  std::vector<protocol::FetchResult> results;  ///< of all frames
  std::vector<std::byte> payload;
  int frames = 0;
};

inline std::optional<Fetched> receive_fetch(RawClient& client,
                                            base::Duration limit = std::chrono::seconds(120)) {
  Fetched fetched;
  while (true) {
    const auto answer = client.receive(limit);
    if (!answer) return std::nullopt;
    const auto response = protocol::decode_fetch_response(answer->header_bytes());
    if (!response) throw std::runtime_error("a fetch answer that does not parse");
    ++fetched.frames;
    fetched.results.insert(fetched.results.end(), response->results.begin(),
                           response->results.end());
    fetched.payload.insert(fetched.payload.end(), answer->payload.begin(), answer->payload.end());
    if ((answer->head.flags & protocol::kFrameMoreFollows) == 0) return fetched;
  }
}

inline Fetched fetch(RawClient& client, const FetchAsk& ask) {
  send_fetch(client, ask);
  auto fetched = receive_fetch(client);
  if (!fetched) throw std::runtime_error("no answer to fetch");
  return *std::move(fetched);
}

}  // namespace mq::testing
