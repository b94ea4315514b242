#include <fmt/format.h>

#include <algorithm>
#include <set>

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

std::string text_of(const TopicPartition& partition) {
  return fmt::format("{}/{}", partition.topic, partition.partition);
}

Value item_of(const TopicPartition& partition) {
  return Value::object().set("topic", partition.topic).set("partition", partition.partition);
}

Value elected_item(const TopicPartition& partition, std::int32_t leader, bool changed,
                   bool dry_run) {
  return item_of(partition).set("leader", leader).set("changed", changed).set("dry_run", dry_run);
}

Failure not_elected(const Error& error, const TopicPartition& partition) {
  const auto name = text_of(partition);
  auto failure = client_failure(error, fmt::format("{} got no other leader", name), name);
  if (error.code != Errc::invalid_request) return failure;
  const bool known = failure.why.find("acknowledged first") != std::string::npos;
  failure.hint = known
                     ? fmt::format("mqctl partition acknowledge-loss {}", name)
                     : fmt::format("mqctl partition describe {} says what each replica has", name);
  return failure;
}

Exit elect_in_sync(Context& context, const std::vector<TopicPartition>& partitions,
                   std::int32_t broker) {
  Report report(context);
  if (context.globals.dry_run) {
    for (const auto& partition : partitions) {
      report.item(elected_item(partition, broker, false, true));
      report.text(fmt::format("would have {} led by {}\n", text_of(partition),
                              broker < 0 ? std::string("the first of its replicas that can")
                                         : fmt::format("broker {}", broker)));
    }
    return report.finish();
  }
  auto admin = connect_admin(context);
  for (const auto& [partition, outcome] : admin.elect_leaders(partitions, broker)) {
    if (!outcome) {
      report.failure(not_elected(outcome.error(), partition));
      continue;
    }
    report.item(elected_item(partition, outcome->broker, outcome->changed, false));
    report.text(fmt::format("{} is led by broker {}{}\n", text_of(partition), outcome->broker,
                            outcome->changed ? "" : ", as before"));
  }
  return report.finish();
}

// With what it has

std::string damage_of(const PartitionDescription& partition) {
  std::vector<std::string> notes;
  for (const auto& note : partition.replica_notes)
    notes.push_back(fmt::format("broker {} {}", note.broker, note.text));
  return fmt::format("{}", fmt::join(notes, "; "));
}

bool leads_damaged(const PartitionDescription& partition) {
  return std::ranges::count(partition.replica_notes, partition.leader, &ReplicaNote::broker) > 0;
}

/// `why` is what its leader says is wrong: a controller that is new may have to be told yet.
Failure not_elected_despite_loss(const Error& error, const TopicPartition& partition,
                                 const std::string& why) {
  auto failure = not_elected(error, partition);
  if (failure.why.find("nothing has to be given up") == std::string::npos) return failure;
  failure.why = fmt::format("{}; its leader has told the controller of no damage yet", why);
  failure.hint = "try again in a moment";
  return failure;
}

/// Why nobody leads it, or what of it is damaged; nothing is given up where somebody leads who has
/// all of it.
std::string why_not_whole(const Result<TopicDescription>& topic, const TopicPartition& partition) {
  const auto what = fmt::format("{} got no other leader", text_of(partition));
  if (!topic) throw Failed(client_failure(topic.error(), what, text_of(partition)));
  const auto found =
      std::ranges::find(topic->partitions, partition.partition, &PartitionDescription::partition);
  Failure failure;
  if (found == topic->partitions.end()) {
    failure = make_failure(protocol::WireError::unknown_partition, what);
  } else if (found->leader >= 0 && leads_damaged(*found)) {
    return damage_of(*found);
  } else if (found->note.empty()) {
    failure = make_failure(
        protocol::WireError::invalid_request, what,
        fmt::format("it is served, by broker {}: nothing has to be given up", found->leader),
        fmt::format("mqctl partition elect-leader {} --broker ID has another "
                    "one that is in sync lead it",
                    text_of(partition)));
  } else {
    return found->note;
  }
  failure.item = text_of(partition);
  throw Failed(std::move(failure));
}

void elect_one_with_loss(Context& context, Admin& admin, const Result<TopicDescription>& topic,
                         const TopicPartition& partition, std::int32_t broker, Report& report) {
  const auto name = text_of(partition);
  const auto why = why_not_whole(topic, partition);
  const auto possible = admin.elect_with_loss({partition}, broker, true);
  if (const auto& outcome = possible.at(partition); !outcome) {
    report.failure(not_elected_despite_loss(outcome.error(), partition, why));
    return;
  }
  if (context.globals.dry_run) {
    report.item(elected_item(partition, broker, false, true));
    report.text(
        fmt::format("would have {} led by broker {} with what it has\n  {}\n", name, broker, why));
    return;
  }
  context.confirm(
      fmt::format(
          "{}: {}.\nThis has broker {} lead it with what it has. Records that only the others "
          "have are served no more;\nwhere its log is damaged it keeps what is sound below the "
          "damage. What a replica gives up goes to unknown/ on its disk.",
          name, why, broker),
      name);
  const auto outcomes = admin.elect_with_loss({partition}, broker);
  const auto& outcome = outcomes.at(partition);
  if (!outcome) {
    report.failure(not_elected_despite_loss(outcome.error(), partition, why));
    return;
  }
  report.item(elected_item(partition, outcome->broker, outcome->changed, false));
  report.text(
      fmt::format("{0} is led by broker {1} with what it has; mqctl partition describe {0} "
                  "says what may be lost\n",
                  name, outcome->broker));
}

Exit elect_with_loss(Context& context, const std::vector<TopicPartition>& partitions,
                     std::int32_t broker) {
  if (broker < 0)
    throw Failed(usage_failure("--accept-loss needs --broker",
                               "whose records are kept is for you to say",
                               "mqctl partition describe names the replicas and what they have"));
  if (!context.globals.dry_run && !context.globals.yes && !context.console.in_is_terminal)
    context.confirm("", "");  // says at once what a script without --yes will meet
  auto admin = connect_admin(context);
  std::set<std::string> topics;
  for (const auto& partition : partitions) topics.insert(partition.topic);
  const auto found = admin.describe_topics({topics.begin(), topics.end()});
  Report report(context);
  for (const auto& partition : partitions) {
    try {
      elect_one_with_loss(context, admin, found.at(partition.topic), partition, broker, report);
    } catch (const Failed& declined) {
      auto failure = declined.failure();
      failure.item = text_of(partition);
      failure.advice.maybe_applied = false;
      report.failure(std::move(failure));
    }
  }
  return report.finish();
}

Exit elect(Context& context) {
  const auto partitions = named(context);
  const auto broker = context.args.has("broker")
                          ? static_cast<std::int32_t>(context.args.number("broker"))
                          : std::int32_t{-1};
  return context.args.on("accept-loss") ? elect_with_loss(context, partitions, broker)
                                        : elect_in_sync(context, partitions, broker);
}

Exit acknowledge(Context& context) {
  const auto partitions = named(context);
  auto admin = connect_admin(context);
  Report report(context);
  for (const auto& [partition, outcome] : admin.acknowledge_losses(partitions)) {
    const auto name = text_of(partition);
    if (!outcome) {
      auto failure =
          client_failure(outcome.error(), fmt::format("{} was not acknowledged", name), name);
      if (outcome.error().code == Errc::invalid_request)
        failure.hint = fmt::format("mqctl partition describe {} names the offset soon", name);
      report.failure(std::move(failure));
      continue;
    }
    report.item(item_of(partition).set("changed", *outcome));
    report.text(*outcome ? fmt::format("{}: the loss is known now, and no alarm any more\n", name)
                         : fmt::format("{}: there is no loss to acknowledge\n", name));
  }
  return report.finish();
}

}  // namespace

Command partition_elect_leader_command() {
  return {
      .path = "partition elect-leader",
      .summary = "Has partitions led by another of the brokers that keep them in sync",
      .details =
          "--accept-loss is the way out where nobody can lead, or where whoever does is damaged "
          "and "
          "nobody in sync is not:\nthe broker leads with what it has, up to where its log is "
          "damaged. "
          "What it lacks is LOST; partition describe and\nhealth name the range until partition "
          "acknowledge-loss, and what replicas give up is kept under unknown/.\nAt a terminal it "
          "wants the name typed; "
          "elsewhere it needs --yes.",
      .examples = {"mqctl partition elect-leader orders/0",
                   "mqctl partition elect-leader orders/0 orders/1 --broker 2",
                   "mqctl partition elect-leader orders/0 --broker 2 --accept-loss --dry-run"},
      .positionals = {{.name = "TOPIC/N", .help = "one or more partitions", .most = SIZE_MAX}},
      .flags = {{.name = "broker",
                 .kind = Kind::number,
                 .value = "ID",
                 .help = "who is to lead; without it the first replica that can",
                 .most = INT32_MAX,
                 .complete = Complete::brokers},
                {.name = "accept-loss",
                 .help = "of partitions that nobody can lead, or only a damaged log: records that "
                         "the broker lacks are given up"}},
      .item_shape =
          R"({"topic":"string","partition":"int","leader":"int","changed":"bool","dry_run":"bool"})",
      .changes = true,
      .dry_run = true,
      .run = elect};
}

Command partition_acknowledge_loss_command() {
  return {
      .path = "partition acknowledge-loss",
      .summary = "Ends the alarm that records of partitions may be lost",
      .details =
          "A partition that is led by a replica which may lack records (its disk was emptied or "
          "replaced, or somebody\naccepted that) keeps `mqctl health` from being well until "
          "somebody says that this is known.",
      .examples = {"mqctl partition acknowledge-loss orders/0"},
      .positionals = {{.name = "TOPIC/N", .help = "one or more partitions", .most = SIZE_MAX}},
      .item_shape = R"({"topic":"string","partition":"int","changed":"bool"})",
      .changes = true,
      .run = acknowledge};
}

}  // namespace mq::mqctl
