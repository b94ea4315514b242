#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "mqctl/cli/client.h"
#include "mqctl/cli/report.h"
#include "mqctl/cli/table.h"
#include "mqctl/verbs/broker_view.h"
#include "mqctl/verbs/stop_check.h"
#include "mqctl/verbs/verbs.h"

namespace mq::mqctl {
namespace {

Exit can_stop(Context& context) {
  const auto& text = context.args.positionals[0];
  const auto id = base::parse_unsigned(text);
  if (!id || *id > INT32_MAX)
    throw Failed(usage_failure(fmt::format("\"{}\" is no broker id", text), "it is a number"));
  const auto broker = static_cast<std::int32_t>(*id);
  const auto what = fmt::format("nothing is known of broker {}", broker);
  auto admin = connect_admin(context);
  const auto cluster = take(admin.describe_cluster(), what);
  if (std::ranges::find(cluster.brokers, broker, &BrokerInfo::id) == cluster.brokers.end()) {
    auto failure =
        make_failure(protocol::WireError::invalid_request, what,
                     fmt::format("there is no broker {}", broker), "mqctl broker list names them");
    throw Failed(std::move(failure));
  }
  std::set<std::string> topics;
  for (const auto& partition : take(admin.list_partitions(), what)) {
    if (std::ranges::count(partition.replicas, broker) > 0) topics.insert(partition.topic);
  }
  const auto described = admin.describe_topics({topics.begin(), topics.end()});
  Report report(context);
  std::size_t kept = 0;
  std::size_t troubles = 0;
  for (const auto& [name, topic] : described) {
    if (!topic) {
      report.failure(client_failure(topic.error(), what, name));
      continue;
    }
    for (const auto& partition : topic->partitions) {
      if (std::ranges::count(partition.replicas, broker) == 0) continue;
      ++kept;
      const auto why = why_not_without(partition, broker);
      if (why.empty()) continue;
      ++troubles;
      report.item(Value::object()
                      .set("topic", name)
                      .set("partition", partition.partition)
                      .set("trouble", why));
      report.text(fmt::format("{}/{}: {}\n", name, partition.partition, why));
    }
  }
  report.head("broker", broker);
  report.head("partitions", std::uint64_t{kept});
  report.head("can_stop", troubles == 0);
  report.text(troubles == 0
                  ? fmt::format("broker {} can stop: all {} that it keeps go on without it\n",
                                broker, counted(kept, "partition"))
                  : fmt::format("broker {} should not stop now: {} of {} would not go on\n", broker,
                                troubles, counted(kept, "partition")));
  const Exit printed = report.finish();
  if (printed != Exit::ok) return printed;
  return troubles == 0 ? Exit::ok : Exit::unhealthy;
}

}  // namespace

std::string why_not_without(const PartitionDescription& partition, std::int32_t broker) {
  const bool member = std::ranges::count(partition.in_sync, broker) > 0;
  const auto left = partition.in_sync.size() - (member ? 1 : 0);
  if (partition.replicas.size() == 1) return "there is no other copy of it";
  if (partition.leader < 0) return "nobody leads it now";
  if (left == 0) return "no other copy of it is in sync";
  if (left < partition.min_isr)
    return fmt::format("{} of {} copies would be in sync, and writes with acks=all need {}", left,
                       partition.replicas.size(), partition.min_isr);
  return {};
}

Command broker_can_stop_command() {
  return {.path = "broker can-stop",
          .summary = "Says in its exit code whether all goes on when a broker is stopped: 0, or 10",
          .details =
              "Before an upgrade or a reboot: mqctl broker can-stop 2 && systemctl stop mqbroker",
          .examples = {"mqctl broker can-stop 2"},
          .positionals = {{.name = "ID", .help = "of the broker", .complete = Complete::brokers}},
          .item_shape = R"({"topic":"string","partition":"int","trouble":"string"})",
          .run = can_stop};
}

}  // namespace mq::mqctl
