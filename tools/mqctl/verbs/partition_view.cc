#include "mqctl/verbs/partition_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/units.h"
#include "mqctl/cli/table.h"
#include "mqctl/verbs/broker_view.h"

namespace mq::mqctl {
namespace {

/// So a broker begins to say why it does not serve such a log.
constexpr std::string_view kDamagedLog = "the partition's log is damaged";
/// And that it serves what is not damaged. The replicas' notes have it, too, a second later.
constexpr std::string_view kDamagedInPlaces = "damaged: ";

std::string follower_text(const PartitionDescription& partition,
                          const FollowerDescription& follower) {
  const bool in_sync = std::ranges::count(partition.in_sync, follower.broker) > 0;
  const auto state = in_sync ? "in sync" : "NOT in sync";
  if (follower.confirmed_end < 0)
    return fmt::format("  broker {}: {}, does not fetch\n", follower.broker, state);
  const auto lag = static_cast<std::uint64_t>(lag_of(partition, follower));
  if (lag == 0)
    return fmt::format("  broker {}: {}, has all below {}\n", follower.broker, state,
                       follower.confirmed_end);
  return fmt::format("  broker {}: {}, has all below {} ({} behind), was level {} ms ago\n",
                     follower.broker, state, follower.confirmed_end, counted(lag, "record"),
                     follower.behind.count());
}

/// Records that have the offsets now may be others.
std::string lost_range(const PartitionDescription& partition) {
  if (partition.loss_start < 0) return {};
  if (partition.loss_end < 0)
    return fmt::format(": those from offset {} on in the epochs before", partition.loss_start);
  return fmt::format(": those from offset {} to {} in the epochs before", partition.loss_start,
                     partition.loss_end - 1);
}

std::string loss_text(const std::string& name, const PartitionDescription& partition) {
  return fmt::format(
      "  ! records may be lost since leader epoch {}{}\n"
      "    try: mqctl partition acknowledge-loss {}, once that is known\n",
      partition.loss_epoch, lost_range(partition), name);
}

std::string sync_text(const PartitionDescription& partition) {
  if (partition.leader < 0 || partition.in_sync.size() >= partition.min_isr) return {};
  std::vector<std::int32_t> missing;
  for (const auto broker : partition.replicas)
    if (std::ranges::count(partition.in_sync, broker) == 0) missing.push_back(broker);
  return fmt::format(
      "  ! acks=all is refused (NOT_ENOUGH_REPLICAS): {} of min_isr {} in sync, "
      "broker{} {} missing\n",
      partition.in_sync.size(), partition.min_isr, missing.size() == 1 ? "" : "s",
      ids_text(missing) + (missing.size() == 1 ? " is" : " are"));
}

std::string leaderless_text(const std::string& name, const PartitionDescription& partition) {
  std::string text;
  for (const auto& note : partition.replica_notes)
    text += fmt::format("  ! broker {} {}\n", note.broker, note.text);
  if (text.empty() || !partition.note.starts_with("no leader"))
    text += fmt::format("  ! {}\n", partition.note);
  if (partition.replicas.size() == 1)
    return text + fmt::format("    try: start broker {}; nobody else has a copy\n",
                              ids_text(partition.replicas));
  return text + fmt::format(
                    "    try: bring back a broker that has everything; or, giving up what others "
                    "have: mqctl partition elect-leader {} --broker ID --accept-loss\n",
                    name);
}

/// The first offset behind the damage that a replica's note names.
std::string behind_damage(std::string_view note) {
  constexpr std::string_view kTo = " to ";
  const auto from = note.find("(offsets ");
  const auto to = note.find(kTo, from == std::string_view::npos ? note.size() : from);
  if (to == std::string_view::npos) return "OFFSET";
  const char* const begin = note.data() + to + kTo.size();
  std::int64_t last = 0;
  const auto parsed = std::from_chars(begin, note.data() + note.size(), last);
  return parsed.ec == std::errc() && last < INT64_MAX ? std::to_string(last + 1) : "OFFSET";
}

/// Where somebody leads: which replicas cannot be read in places, and what to do.
std::string damage_text(const std::string& name, const PartitionDescription& partition) {
  auto notes = partition.replica_notes;
  if (partition.note.starts_with(kDamagedInPlaces) &&
      std::ranges::count(notes, partition.leader, &ReplicaNote::broker) == 0)
    notes.push_back({partition.leader, "is " + partition.note});
  std::string text;
  std::string behind;
  std::size_t in_sync = 0;
  for (const auto& note : notes) {
    text += fmt::format("  ! broker {} {}\n", note.broker, note.text);
    if (note.broker == partition.leader) behind = behind_damage(note.text);
    in_sync += std::ranges::count(partition.in_sync, note.broker) > 0 ? 1 : 0;
  }
  if (behind.empty()) return text;
  if (in_sync < partition.in_sync.size())
    return text +
           "    nothing to do: another replica in sync leads soon, and it is mended from there\n";
  return text + fmt::format(
                    "    the rest is read and written. try: mqctl topic trim {0} -p {1} --to {4} "
                    "removes all below, keeps what is behind;\n    or mqctl partition elect-leader "
                    "{2} --broker {3} --accept-loss keeps what is sound before it, puts the rest "
                    "into unknown/\n",
                    name.substr(0, name.rfind('/')), partition.partition, name, partition.leader,
                    behind);
}

}  // namespace

std::string partition_name(const std::string& topic, std::int32_t partition) {
  return fmt::format("{}/{}", topic, partition);
}

std::int64_t lag_of(const PartitionDescription& partition, const FollowerDescription& follower) {
  if (follower.confirmed_end < 0 || partition.log_end_offset < 0) return -1;
  return std::max<std::int64_t>(0, partition.log_end_offset - follower.confirmed_end);
}

std::string partition_text(const std::string& topic, const PartitionDescription& partition) {
  const auto name = partition_name(topic, partition.partition);
  const auto records =
      std::max<std::int64_t>(0, partition.high_watermark - partition.log_start_offset);
  std::string text =
      fmt::format("{}  leader: {} (epoch {})   replicas {}   in sync {}{}\n", name,
                  partition.leader < 0 ? "none" : fmt::format("broker {}", partition.leader),
                  partition.leader_epoch, ids_text(partition.replicas), ids_text(partition.in_sync),
                  partition.replicas.size() > 1 ? fmt::format(" (min {})", partition.min_isr) : "");
  if (partition.log_end_offset >= 0) {
    text +=
        fmt::format("  offsets {} to {}, log end {}   {} in {}, {}\n", partition.log_start_offset,
                    partition.high_watermark, partition.log_end_offset,
                    counted(static_cast<std::uint64_t>(records), "record"),
                    base::format_bytes(partition.bytes), counted(partition.segments, "segment"));
  }
  for (const auto& follower : partition.followers) text += follower_text(partition, follower);
  text += sync_text(partition);
  if (partition.loss_epoch >= 0) text += loss_text(name, partition);
  if (partition.leader < 0) return text + leaderless_text(name, partition);
  text += damage_text(name, partition);
  if (partition.note.empty() || partition.note.starts_with(kDamagedInPlaces)) return text;
  text += fmt::format("  ! {}\n", partition.note);
  // Others would have led it: there is no other replica.
  if (partition.note.starts_with(kDamagedLog))
    text += fmt::format(
        "    try: mqctl partition elect-leader {} --broker {} --accept-loss keeps what is sound "
        "below "
        "the damage\n",
        name, partition.leader);
  return text;
}

std::map<TopicPartition, std::string> damage_notes(Admin& admin,
                                                   const std::vector<PartitionInfo>& partitions,
                                                   std::size_t most) {
  std::set<std::string> topics;
  for (const auto& partition : partitions) {
    if (partition.leader >= 0 && topics.size() < most) topics.insert(partition.topic);
  }
  return damage_notes(admin, topics);
}

std::map<TopicPartition, std::string> damage_notes(Admin& admin,
                                                   const std::set<std::string>& topics) {
  std::map<TopicPartition, std::string> notes;
  if (topics.empty()) return notes;
  std::size_t damaged = 0;
  for (const auto& [id, broker] : admin.describe_brokers())
    if (broker) damaged += broker->partitions_damaged;
  if (damaged == 0) return notes;
  return damage_notes(admin.describe_topics({topics.begin(), topics.end()}));
}

std::map<TopicPartition, std::string> damage_notes(const PerItem<TopicDescription>& topics) {
  std::map<TopicPartition, std::string> notes;
  for (const auto& [name, topic] : topics) {
    if (!topic) continue;
    for (const auto& partition : topic->partitions) {
      if (partition.leader < 0) continue;
      for (const auto& note : partition.replica_notes) {
        auto& text = notes[{name, partition.partition}];
        text += fmt::format("{}broker {} {}", text.empty() ? "" : "; ", note.broker, note.text);
      }
    }
  }
  return notes;
}

std::map<std::string, std::int32_t> counted_by_topic(
    const std::map<TopicPartition, std::string>& notes) {
  std::map<std::string, std::int32_t> partitions;
  for (const auto& [partition, note] : notes) ++partitions[partition.topic];
  return partitions;
}

std::map<TopicPartition, std::string> leaderless_notes(Admin& admin,
                                                       const std::vector<PartitionInfo>& partitions,
                                                       std::size_t most) {
  std::set<std::string> topics;
  std::map<TopicPartition, std::string> notes;
  for (const auto& partition : partitions) {
    if (partition.leader >= 0 || notes.size() == most) continue;
    topics.insert(partition.topic);
    notes[{partition.topic, partition.partition}] = "no leader";
  }
  if (topics.empty()) return notes;
  for (const auto& [name, topic] : admin.describe_topics({topics.begin(), topics.end()})) {
    if (!topic) continue;
    for (const auto& partition : topic->partitions) {
      const auto found = notes.find({name, partition.partition});
      if (found != notes.end() && partition.leader < 0) found->second = partition.note;
    }
  }
  return notes;
}

}  // namespace mq::mqctl
