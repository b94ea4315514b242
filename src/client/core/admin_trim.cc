#include <fmt/format.h>

#include "client/core/admin_core.h"
#include "client/core/error.h"
#include "client/core/gather.h"
#include "client/core/request.h"
#include "protocol/trim_partitions.h"

namespace mq::client {
namespace {

constexpr std::chrono::milliseconds kPause{50};
/// One whose leader is away keeps the others waiting no longer than itself.
constexpr std::size_t kTrimsAtOnce = 64;

}  // namespace

asio::awaitable<Result<model::PartitionId>> AdminCore::partition_id(TopicPartition name,
                                                                    base::TimePoint deadline) {
  const auto topic = co_await core_.metadata.lookup(name.topic, deadline);
  if (!topic) co_return topic.error();
  co_return partition_of(**topic, name);
}

/// Trimming twice is trimming once, so an unknown outcome is resolved by asking again.
asio::awaitable<Result<std::int64_t>> AdminCore::trim_one(TopicPartition name, std::int64_t to) {
  const base::TimePoint until = deadline();
  if (to < 0)
    co_return make_error(Errc::invalid_argument, fmt::format("offset {} is negative", to));
  const auto id = co_await partition_id(name, until);
  if (!id) co_return id.error();
  while (true) {
    const auto trimmed = co_await ask_leader_to_trim(*id, to, until);
    if (trimmed || !trimmed.error().retriable) co_return trimmed;
    if (core_.runtime.now() + kPause >= until) co_return trimmed;
    core_.metadata.refresh_soon(id->topic);
    co_await core_.runtime.sleep_for(kPause);
    // The topic may be gone, or another one may have its name.
    if (core_.metadata.leader(*id) >= 0) continue;
    const auto now = co_await partition_id(name, until);
    if (!now) co_return now.error();
    if (*now != *id)
      co_return make_error(Errc::unknown_topic_id, fmt::format("'{}' was made anew", name.topic));
  }
}

asio::awaitable<Result<std::int64_t>> AdminCore::ask_leader_to_trim(model::PartitionId id,
                                                                    std::int64_t to,
                                                                    base::TimePoint until) {
  const std::int32_t leader = core_.metadata.leader(id);
  if (leader < 0) {
    co_return make_error(Errc::partition_offline,
                         fmt::format("{} has no leader", core_.metadata.name_of(id)));
  }
  auto connection = co_await core_.pool.get(leader, until);
  if (!connection) co_return connection.error();
  protocol::TrimPartitionsRequest request;
  fill_envelope(request.envelope, config_, core_.runtime.now(), until);
  request.entries.push_back(protocol::TrimEntry{id, model::Offset(to)});
  net::ClientRequest message;
  message.api = protocol::ApiKey::trim_partitions;
  message.header = protocol::encode(request);
  message.deadline = until;
  const std::string place = where(**connection);
  const auto answer = co_await exchange(*connection, std::move(message),
                                        &protocol::decode_trim_partitions_response);
  if (!answer) co_return answer.error();
  if (answer->results.size() != 1) {
    co_return make_error(Errc::protocol_violation,
                         "an answer about a trim has the wrong number of results", place);
  }
  const auto& result = answer->results.front();
  if (!result.status.ok()) co_return core_.metadata.error_of(result.status, id, place);
  co_return result.log_start_offset.value();
}

asio::awaitable<std::map<TopicPartition, Result<std::int64_t>>> AdminCore::trim(
    std::map<TopicPartition, std::int64_t> to) {
  std::map<TopicPartition, Result<std::int64_t>> outcomes;
  for (auto next = to.begin(); next != to.end();) {
    const auto first = next;
    std::vector<asio::awaitable<Result<std::int64_t>>> some;
    for (; next != to.end() && some.size() < kTrimsAtOnce; ++next)
      some.push_back(trim_one(next->first, next->second));
    auto trimmed =
        co_await Gather<Result<std::int64_t>>::all(core_.runtime, core_.tasks, std::move(some));
    auto one = first;
    for (auto& outcome : trimmed) outcomes.emplace((one++)->first, std::move(outcome));
  }
  co_return outcomes;
}

}  // namespace mq::client
