#include <fmt/format.h>

#include "mqctl/cli/client.h"
#include "mqctl/cli/report.h"
#include "mqctl/verbs/choices.h"
#include "mqctl/verbs/verbs.h"

// What an operator wants of the controller for single partitions.
namespace mq::mqctl {
namespace {

std::vector<TopicPartition> named(const Context& context) {
  std::vector<TopicPartition> partitions;
  for (const auto& text : context.distinct_items()) partitions.push_back(partition_named(text));
  return partitions;
}

Exit tell(Context& context, const std::map<TopicPartition, Result<void>>& outcomes,
          std::string_view done, std::string_view not_done) {
  Report report(context);
  for (const auto& [partition, outcome] : outcomes) {
    const auto name = fmt::format("{}/{}", partition.topic, partition.partition);
    if (!outcome) {
      report.failure(client_failure(outcome.error(), fmt::format("{} {}", name, not_done), name));
      continue;
    }
    report.item(
        Value::object().set("topic", partition.topic).set("partition", partition.partition));
    report.text(fmt::format("{} {}\n", name, done));
  }
  return report.finish();
}

Exit elect(Context& context) {
  const auto partitions = named(context);
  auto admin = connect_admin(context);
  const auto broker = context.args.has("broker")
                          ? static_cast<std::int32_t>(context.args.number("broker"))
                          : std::int32_t{-1};
  const auto done = broker < 0 ? std::string("is led by the first of its replicas that can")
                               : fmt::format("is led by broker {}", broker);
  return tell(context, admin.elect_leaders(partitions, broker), done, "got no other leader");
}

Exit acknowledge(Context& context) {
  const auto partitions = named(context);
  auto admin = connect_admin(context);
  return tell(context, admin.acknowledge_losses(partitions), "is no alarm any more",
              "was not acknowledged");
}

constexpr const char* kShape = R"({"topic":"string","partition":"int"})";

}  // namespace

Command partition_elect_leader_command() {
  return {.path = "partition elect-leader",
          .summary = "Has partitions led by another of the brokers that keep them in sync",
          .examples = {"mqctl partition elect-leader orders/0",
                       "mqctl partition elect-leader orders/0 orders/1 --broker 2"},
          .positionals = {{.name = "TOPIC/N", .help = "one or more partitions", .most = SIZE_MAX}},
          .flags = {{.name = "broker",
                     .kind = Kind::number,
                     .value = "ID",
                     .help = "who is to lead; without it the first replica that can",
                     .most = INT32_MAX,
                     .complete = Complete::brokers}},
          .item_shape = kShape,
          .changes = true,
          .run = elect};
}

Command partition_acknowledge_loss_command() {
  return {
      .path = "partition acknowledge-loss",
      .summary = "Ends the alarm that records of partitions may be lost",
      .details =
          "A partition whose only replica that could lead could not say that nothing is missing "
          "(its disk was emptied\nor replaced) keeps `mqctl health` from being well until "
          "somebody says that this is known.",
      .examples = {"mqctl partition acknowledge-loss orders/0"},
      .positionals = {{.name = "TOPIC/N", .help = "one or more partitions", .most = SIZE_MAX}},
      .item_shape = kShape,
      .changes = true,
      .run = acknowledge};
}

}  // namespace mq::mqctl
