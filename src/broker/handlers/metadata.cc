#include "broker/broker_numbers.h"
#include "broker/connection.h"
#include "broker/handlers/handlers.h"
#include "broker/hop.h"
#include "broker/long_answer.h"
#include "broker/membership.h"
#include "protocol/parts.h"

namespace mq::broker {
namespace {

/// Who is to be asked. One that is being recovered here has no leader yet: this broker says so
/// itself to whoever produces or fetches.
std::int32_t asked_for(const Core& core, const metadata::PartitionAssignment& partition) {
  const bool recovering = core.partitions_recovering > 0 && core.answers_for(partition);
  return recovering ? core.id.value() : partition.leader.value();
}

protocol::TopicMetadata describe(const Core& core, const metadata::TopicInfo& topic, bool listed) {
  protocol::TopicMetadata out;
  out.status.broker = core.id.value();
  out.name = topic.name;
  out.id = topic.id;
  out.batch_bytes_max = topic.settings.batch_bytes;
  for (const auto& partition : topic.visible()) {
    protocol::PartitionMetadata item;
    item.partition = partition.id.partition;
    item.leader = listed ? partition.leader.value() : asked_for(core, partition);
    item.leader_epoch = partition.leader_epoch.value();
    item.partition_version = partition.version.value();
    item.replicas = numbers_of(partition.replicas);
    item.in_sync = numbers_of(partition.isr);
    item.min_isr = partition.min_isr;
    out.partitions.push_back(std::move(item));
  }
  return out;
}

protocol::TopicMetadata unknown(const Core& core, const metadata::ClusterImage& image,
                                const std::string& name) {
  protocol::TopicMetadata out;
  out.name = name;
  out.status = core.no_topic(image, name);
  return out;
}

protocol::MetadataResponse answer_of(const Core& core, const metadata::ClusterImage& image,
                                     const protocol::MetadataRequest& ask) {
  protocol::MetadataResponse response;
  response.envelope = core.envelope();
  response.envelope.metadata_version = image.version();
  response.cluster_id = image.cluster_id();
  response.controller = image.controller().value();
  for (const auto& broker : image.brokers())
    response.brokers.push_back({broker.id.value(), broker.advertised.host, broker.advertised.port,
                                !broker.alive, broker.rack});
  if (ask.all_topics) {
    for (const auto& [name, topic] : image.topics()) {
      if (!topic->visible().empty()) response.topics.push_back(describe(core, *topic, true));
    }
    return response;
  }
  for (const auto& name : ask.topics) {
    const auto topic = image.find_topic(name);
    const bool there = topic && !topic->visible().empty();
    response.topics.push_back(there ? describe(core, *topic, false) : unknown(core, image, name));
  }
  return response;
}

void answer(Request request, const metadata::ClusterImage& image,
            const protocol::MetadataRequest& ask) {
  auto headers = protocol::encode_in_parts(answer_of(request.core(), image, ask));
  answer_in_frames(std::move(request), std::move(headers));
}

asio::awaitable<void> wait_and_answer(Request request, protocol::MetadataRequest ask) {
  Core& core = request.core();
  const auto deadline = request.deadline(ask.envelope.deadline_ms);
  const auto image =
      co_await run_on(*core.home, core.membership->view().wait_for_image(ask.newer_than, deadline));
  answer(std::move(request), *image, ask);
}

}  // namespace

void handle_metadata(Request request) {
  auto ask = protocol::decode_metadata_request(request.header());
  if (!ask) return request.fail(protocol::WireError::malformed_request, "Metadata does not parse");
  request.release_memory();
  const auto image = request.core().image();
  if (image->version() > ask->newer_than) return answer(std::move(request), *image, *ask);
  auto& worker = request.worker();
  worker.tasks().spawn("metadata", wait_and_answer(std::move(request), *std::move(ask)));
}

}  // namespace mq::broker
