#include "client/core/offset_lookup.h"

#include <fmt/format.h>

#include <algorithm>

#include "client/core/error.h"
#include "client/core/gather.h"
#include "client/core/request.h"

namespace mq::client {
namespace {

constexpr std::chrono::milliseconds kPause{50};

}  // namespace

asio::awaitable<Result<OffsetLookup::Offsets>> OffsetLookup::find(std::vector<Key> keys,
                                                                  base::TimePoint deadline) {
  Offsets found;
  std::optional<Error> told;
  while (true) {
    ByLeader by_leader;
    for (const Key& key : keys) {
      if (core_.metadata.gone(key.partition.topic))
        co_return make_error(Errc::unknown_topic_id, "the topic was deleted");
      if (found.contains(key)) continue;
      auto& mine = by_leader[core_.metadata.leader(key.partition)];
      if (mine.size() < kEntriesAtOnce) mine.push_back(key);  // the others in the next round
    }
    if (by_leader.empty()) co_return found;
    const auto error = co_await ask_all(by_leader, deadline, &found);
    if (!error) continue;
    if (!error->retriable) co_return *error;
    if (error->code != Errc::timed_out) told = *error;
    // What a broker said tells more than that there was no time left to ask it once more.
    if (core_.runtime.now() + kPause >= deadline) co_return told.value_or(*error);
    for (const auto& [broker, missing] : by_leader) {
      for (const Key& key : missing) core_.metadata.refresh_soon(key.partition.topic);
    }
    co_await core_.runtime.sleep_for(kPause);
  }
}

/// All leaders at once: one that does not answer delays nobody else's partitions.
asio::awaitable<std::optional<Error>> OffsetLookup::ask_all(ByLeader by_leader,
                                                            base::TimePoint deadline,
                                                            Offsets* found) {
  std::vector<asio::awaitable<Result<void>>> requests;
  for (auto& [broker, keys] : by_leader)
    requests.push_back(ask(broker, std::move(keys), deadline, found));
  const auto outcomes =
      co_await Gather<Result<void>>::all(core_.runtime, core_.tasks, std::move(requests));
  std::optional<Error> error;
  for (const auto& outcome : outcomes) {
    if (outcome || (error && !error->retriable)) continue;
    error = outcome.error();
  }
  co_return error;
}

asio::awaitable<Result<void>> OffsetLookup::ask(std::int32_t broker, std::vector<Key> keys,
                                                base::TimePoint deadline, Offsets* found) {
  if (broker < 0) {
    co_return make_error(
        Errc::partition_offline,
        fmt::format("{} has no leader", core_.metadata.name_of(keys.front().partition)));
  }
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
    if (!result.status.ok())
      co_return core_.metadata.error_of(result.status, keys[i].partition, place);
    const Found there{result.offset.value(), result.append_time_ms};
    found->insert_or_assign(keys[i], there);
  }
  co_return Result<void>{};
}

}  // namespace mq::client
