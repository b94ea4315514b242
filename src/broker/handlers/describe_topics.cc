#include <algorithm>

#include "broker/broker_numbers.h"
#include "broker/connection.h"
#include "broker/handlers/handlers.h"
#include "broker/leaderless.h"
#include "broker/long_answer.h"
#include "broker/partition_facts.h"
#include "protocol/parts.h"

namespace mq::broker {
namespace {

/// What is in the image, and what this broker knows besides.
struct Known {
  const Core& core;
  metadata::ImagePtr image;
  std::map<model::PartitionId, PartitionFacts> facts;
  OwnReports reports;
};

/// "broker.toml": the controller's.
std::string origin_of(const metadata::TopicInfo& topic, const std::string& setting) {
  if (topic.overrides.contains(setting)) return "topic";
  // In force is what follows from the number of replicas; one of broker.toml is an override.
  if (setting == "min_isr") return "built-in";
  return model::given_topic_settings(topic.settings).contains(setting) ? "broker.toml" : "built-in";
}

protocol::FollowerDescription describe(const replication::Isr::Follower& follower,
                                       base::TimePoint now) {
  protocol::FollowerDescription out;
  out.broker = follower.broker.value();
  out.confirmed_end = follower.confirmed_end.value();
  const auto behind =
      std::chrono::duration_cast<std::chrono::milliseconds>(now - follower.caught_up_at).count();
  out.behind_ms = static_cast<std::uint32_t>(std::clamp<std::int64_t>(behind, 0, UINT32_MAX));
  return out;
}

void describe_leaderless(const Known& known, const metadata::TopicInfo& topic,
                         const metadata::PartitionAssignment& assignment,
                         protocol::PartitionDescription& out) {
  const auto report = known.reports.find(assignment.id);
  out.replica_notes = replica_notes(known.core, *known.image, assignment,
                                    report == known.reports.end() ? nullptr : &report->second);
  if (const auto* const damage = known.image->damage_of(topic.name)) out.note = damage->text;
}

void describe_own_damage(const Known& known, const metadata::PartitionAssignment& assignment,
                         protocol::PartitionDescription& out) {
  const auto report = known.reports.find(assignment.id);
  auto note = damage_note(known.core, report == known.reports.end() ? nullptr : &report->second);
  if (!note.empty()) out.replica_notes.push_back({known.core.id.value(), std::move(note)});
}

protocol::PartitionDescription describe(const Known& known, const metadata::TopicInfo& topic,
                                        const metadata::PartitionAssignment& assignment) {
  const Core& core = known.core;
  protocol::PartitionDescription out;
  out.partition = assignment.id.partition;
  out.leader = assignment.leader.value();
  out.leader_epoch = assignment.leader_epoch.value();
  out.replicas = numbers_of(assignment.replicas);
  out.in_sync = numbers_of(assignment.isr);
  out.min_isr = assignment.min_isr;
  out.loss_epoch = assignment.loss_epoch.value();
  out.loss_start = assignment.loss_start.value();
  out.loss_end = assignment.loss_end.value();
  if (assignment.leader == model::BrokerId())
    describe_leaderless(known, topic, assignment, out);
  else
    describe_own_damage(known, assignment, out);
  if (assignment.leader != core.id) return out;  // its leader knows
  const auto found = known.facts.find(assignment.id);
  const PartitionFacts* fact = found == known.facts.end() ? nullptr : &found->second;
  out.note = partition_note(core, fact);
  if (!fact) return out;
  out.log_start_offset = fact->log_start_offset.value();
  out.high_watermark = fact->high_watermark.value();
  out.log_end_offset = fact->log_end_offset.value();
  out.bytes = fact->bytes;
  out.segments = fact->segments;
  for (const auto& follower : fact->followers)
    out.followers.push_back(describe(follower, core.home->now()));
  return out;
}

protocol::TopicDescription describe(const Known& known, const metadata::TopicInfo& topic) {
  protocol::TopicDescription out;
  out.status.broker = known.core.id.value();
  out.name = topic.name;
  out.id = topic.id;
  for (const auto& setting : model::topic_setting_names())
    out.settings.push_back(
        {setting, model::topic_setting_text(topic.settings, setting), origin_of(topic, setting)});
  for (const auto& assignment : topic.visible())
    out.partitions.push_back(describe(known, topic, assignment));
  return out;
}

/// What is led here, of these topics, and was found damaged or cannot be served.
std::vector<model::PartitionId> spoilt_of(const Known& known,
                                          const std::vector<metadata::TopicPtr>& topics) {
  std::vector<model::PartitionId> spoilt;
  for (const auto& topic : topics) {
    for (const auto& assignment : topic->visible()) {
      const auto found = known.facts.find(assignment.id);
      if (found == known.facts.end()) continue;
      if (!found->second.damage.empty() || !found->second.failure.empty())
        spoilt.push_back(assignment.id);
    }
  }
  return spoilt;
}

asio::awaitable<void> describe_all(Request request, protocol::DescribeTopicsRequest ask) {
  Core& core = request.core();
  Known known{core, core.image(), {}, {}};
  std::vector<metadata::TopicPtr> topics;
  for (const auto& name : ask.names) {
    auto topic = known.image->find_topic(name);
    if (topic && !topic->visible().empty()) topics.push_back(std::move(topic));
  }
  known.facts = co_await gather_partition_facts(core);
  known.reports = co_await gather_own_reports(core, topics, spoilt_of(known, topics));
  protocol::DescribeTopicsResponse response;
  for (const auto& name : ask.names) {
    const auto topic = known.image->find_topic(name);
    if (topic && !topic->visible().empty()) {
      response.topics.push_back(describe(known, *topic));
      continue;
    }
    protocol::TopicDescription unknown;
    unknown.name = name;
    unknown.status = core.no_topic(*known.image, name);
    response.topics.push_back(std::move(unknown));
  }
  response.envelope = core.envelope();
  answer_in_frames(std::move(request), protocol::encode_in_parts(response));
}

}  // namespace

void handle_describe_topics(Request request) {
  auto ask = protocol::decode_describe_topics_request(request.header());
  if (!ask)
    return request.fail(protocol::WireError::malformed_request, "DescribeTopics does not parse");
  request.release_memory();
  auto& worker = request.worker();
  worker.tasks().spawn("describe topics", describe_all(std::move(request), *std::move(ask)));
}

}  // namespace mq::broker
