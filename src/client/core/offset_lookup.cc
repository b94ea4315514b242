#include "client/core/offset_lookup.h"

#include <algorithm>

#include "client/core/error.h"
#include "client/core/request.h"

namespace mq::client {
namespace {

constexpr std::chrono::milliseconds kPause{50};

}  // namespace

asio::awaitable<Result<OffsetLookup::Offsets>> OffsetLookup::find(std::vector<Key> keys,
                                                                  base::TimePoint deadline) {
  Offsets found;
  while (true) {
    std::map<std::int32_t, std::vector<Key>> by_leader;
    for (const Key& key : keys) {
      if (core_.metadata.gone(key.partition.topic))
        co_return make_error(Errc::unknown_topic_id, "the topic was deleted");
      if (found.contains(key)) continue;
      auto& mine = by_leader[core_.metadata.leader(key.partition)];
      if (mine.size() < kEntriesAtOnce) mine.push_back(key);  // the others in the next round
    }
    if (by_leader.empty()) co_return found;
    Error error;
    for (const auto& [broker, mine] : by_leader) {
      const auto asked = co_await ask(broker, mine, deadline, &found);
      if (asked) continue;
      error = asked.error();
      if (!error.retriable) co_return error;
    }
    if (error.code == Errc::ok) continue;
    if (core_.runtime.now() + kPause >= deadline) co_return error;
    for (const auto& [broker, missing] : by_leader) {
      for (const Key& key : missing) core_.metadata.refresh_soon(key.partition.topic);
    }
    co_await core_.runtime.sleep_for(kPause);
  }
}

asio::awaitable<Result<void>> OffsetLookup::ask(std::int32_t broker, std::vector<Key> keys,
                                                base::TimePoint deadline, Offsets* found) {
  if (broker < 0) co_return make_error(Errc::partition_offline, "a partition has no leader");
  auto connection = co_await core_.pool.get(broker, deadline);
  if (!connection) co_return connection.error();
  protocol::ListOffsetsRequest request;
  fill_envelope(request.envelope, core_.config, core_.runtime.now(), deadline);
  net::ClientRequest message;
  for (const Key& key : keys) {
    const std::int64_t time_ms = std::max<std::int64_t>(0, key.time_ms);
    request.entries.push_back(protocol::ListOffsetsEntry{key.partition, key.point, time_ms});
    if (key.point == protocol::OffsetPoint::at_time) message.version = protocol::kListOffsetsByTime;
  }
  message.api = protocol::ApiKey::list_offsets;
  message.header = protocol::encode(request);
  message.deadline = deadline;
  const std::string place = where(**connection);
  const auto answer =
      co_await exchange(*connection, std::move(message), &protocol::decode_list_offsets_response);
  if (!answer) co_return answer.error();
  if (answer->results.size() != keys.size()) {
    co_return make_error(Errc::protocol_violation,
                         "an answer about offsets has the wrong number of results", place);
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const protocol::ListOffsetsResult& result = answer->results[i];
    if (!result.status.ok()) co_return from_status(result.status, place);
    const Found there{result.offset.value(), result.append_time_ms};
    found->insert_or_assign(keys[i], there);
  }
  co_return Result<void>{};
}

}  // namespace mq::client
