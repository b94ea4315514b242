#include "mqctl/verbs/reachable.h"

#include <fmt/format.h>

#include <algorithm>

#include "mqctl/cli/client.h"

namespace mq::mqctl {
namespace {

/// Of the second look, after the first has taken the whole time.
constexpr Duration kSecondLook{2000};

using ByLeader = std::map<std::int32_t, std::vector<TopicPartition>>;

ByLeader by_leader(const Context& context, const std::vector<TopicPartition>& partitions,
                   const std::string& what) {
  auto admin = connect_admin(context);
  std::map<TopicPartition, std::int32_t> leaders;
  for (const auto& info : take(admin.list_partitions(), what))
    leaders[{info.topic, info.partition}] = info.leader;
  ByLeader grouped;
  for (const auto& partition : partitions) {
    const auto found = leaders.find(partition);
    grouped[found == leaders.end() ? -1 : found->second].push_back(partition);
  }
  return grouped;
}

}  // namespace

std::vector<TopicPartition> Reached::names() const {
  std::vector<TopicPartition> names;
  for (const auto& [name, range] : ranges) names.push_back(name);
  return names;
}

Reached reach(const Context& context, Consumer& consumer,
              const std::vector<TopicPartition>& partitions, const std::string& what) {
  Reached reached;
  auto all = consumer.offsets(partitions);
  if (all) {
    reached.ranges = std::move(*all);
    return reached;
  }
  if (!all.error().retriable || partitions.size() < 2) throw_client(all.error(), what);
  ConsumerConfig config;
  static_cast<ClientConfig&>(config) = client_config(context);
  config.request_timeout = std::min(config.request_timeout, kSecondLook);
  auto again = connected(context, Consumer::create(std::move(config)));
  for (const auto& [leader, group] : by_leader(context, partitions, what)) {
    Error error = all.error();
    if (leader < 0) {
      error = Error{};
      error.code = Errc::partition_offline;
      error.retriable = true;
      error.message = "it has no leader";
    } else if (auto ranges = again.offsets(group)) {
      reached.ranges.merge(*ranges);
      continue;
    } else {
      error = ranges.error();
    }
    for (const auto& partition : group) reached.unreached.emplace(partition, error);
  }
  if (reached.ranges.empty()) throw_client(all.error(), what);
  return reached;
}

}  // namespace mq::mqctl
