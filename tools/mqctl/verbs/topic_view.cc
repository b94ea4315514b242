#include "mqctl/verbs/topic_view.h"

#include <fmt/format.h>

#include "mqctl/cli/table.h"

namespace mq::mqctl {

Value listed_topic(const TopicSummary& topic, std::int32_t damaged) {
  return Value::object()
      .set("name", topic.name)
      .set("id", topic.id)
      .set("partitions", topic.partitions)
      .set("replicas", topic.replicas)
      .set("records", topic.records)
      .set("bytes", topic.bytes)
      .set("partitions_not_serving", topic.partitions_not_serving)
      .set("partitions_damaged", damaged);
}

std::string topic_note(const TopicSummary& topic, std::int32_t damaged) {
  std::string note;
  if (topic.partitions_not_serving > 0)
    note = fmt::format("{} of {} partitions not served", topic.partitions_not_serving,
                       topic.partitions);
  if (damaged > 0)
    note += fmt::format("{}{} of {} damaged: mqctl partition list {}", note.empty() ? "" : "; ",
                        damaged, counted(static_cast<std::uint64_t>(topic.partitions), "partition"),
                        topic.name);
  return note;
}

}  // namespace mq::mqctl
