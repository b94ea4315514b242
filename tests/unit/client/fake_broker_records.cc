// What a FakeBroker does with records: producing, fetching, looking up offsets.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/check.h"
#include "fake_broker_connection.h"
#include "model/record_reader.h"
#include "protocol/init_producer.h"
#include "replication/sequence_rule.h"

namespace mq::testing {

using protocol::Status;
using protocol::WireError;

namespace {

WireError wire_error(base::Error refusal) {
  using replication::ReplicationErrc;
  switch (static_cast<ReplicationErrc>(refusal.value())) {
    case ReplicationErrc::unknown_producer:
      return WireError::unknown_producer;
    case ReplicationErrc::out_of_order_sequence:
      return WireError::out_of_order_sequence;
    case ReplicationErrc::duplicate_sequence:
      return WireError::duplicate_sequence;
    default:
      return WireError::producer_fenced;
  }
}

}  // namespace

void FakeBroker::inject(const std::string& topic, int partition, std::string batch, int records) {
  Partition& log = cluster_->topics.at(topic).partitions.at(static_cast<std::size_t>(partition));
  log.batches.push_back(std::move(batch));
  log.end += records;
  appended_.notify_all();
}

std::vector<std::string> FakeBroker::values(const std::string& topic, int partition) {
  std::vector<std::string> values;
  for (const std::string& bytes :
       cluster_->topics.at(topic).partitions.at(static_cast<std::size_t>(partition)).batches) {
    const auto view = model::RecordBatchView::parse(base::as_bytes(bytes));
    MQ_CHECK(view.has_value(), "a stored batch is bad");
    const auto records = model::decompress(*view, base::BufferPool::shared());
    model::RecordReader reader(*view, records->bytes);
    model::RecordView record;
    while (reader.next(record) == model::RecordStep::record)
      values.emplace_back(record.value ? base::as_text(*record.value) : "<null>");
  }
  return values;
}

void FakeBroker::init_producer(Connection& connection, const net::Frame& frame) {
  protocol::InitProducerResponse response;
  if (refuse_init) {
    if (const auto status = refuse_init()) response.envelope.status = *status;
  }
  ++init_requests;
  if (response.envelope.status.ok()) {
    response.producer_id = 1000 + init_requests;
    response.producer_epoch = 0;
  }
  answer(connection, frame.head, protocol::encode(response));
}

void FakeBroker::forget_producers() {
  for (auto& [name, topic] : cluster_->topics) {
    for (Partition& partition : topic.partitions)
      partition.producers = std::make_shared<storage::ProducerTable>();
  }
}

asio::awaitable<bool> FakeBroker::produce(ConnectionPtr connection, net::Frame frame) {
  ++produce_requests;
  const auto request = protocol::decode_produce_request(frame.header);
  produce_entries.push_back(request->entries.size());
  protocol::ProduceResponse response;
  response.envelope.metadata_version = image().version;
  base::MutableBytes payload = frame.payload;
  bool lost = false;
  for (const auto& entry : request->entries) {
    response.results.push_back(append(*connection, entry, payload.first(entry.batch_bytes), lost));
    payload = payload.subspan(entry.batch_bytes);
  }
  appended_.notify_all();
  if (lost) co_return false;
  if (mute) co_return true;
  if (produce_delay > base::Duration::zero()) co_await runtime_.sleep_for(produce_delay);
  if ((frame.head.flags & protocol::kFrameNoAnswer) != 0) co_return true;
  answer(*connection, frame.head, protocol::encode(response));
  co_return true;
}

protocol::ProduceResult FakeBroker::append(Connection& connection,
                                           const protocol::ProduceEntry& entry,
                                           base::MutableBytes batch, bool& lost) {
  ++produced_batches;
  protocol::ProduceResult result;
  result.partition = entry.partition;
  const auto refused = [&](WireError error, std::string text) {
    result.status = Status::of(error, std::move(text), broker_id);
    return result;
  };
  Topic* topic = find(entry.partition.topic);
  if (topic == nullptr) return refused(WireError::unknown_topic_id, "no such topic id");
  if (!knows(entry.partition)) return refused(WireError::unknown_partition, "no such partition");
  Partition& log = topic->partitions.at(static_cast<std::size_t>(entry.partition.partition));
  if (!leads(log)) return refused(WireError::not_leader, "another broker leads it");
  Produced produced{topic->name, entry.partition.partition, entry.sequence, batch.size(),
                    produced_batches};
  // PAR-5, as a broker keeps it.
  if (log.instance == connection.instance && connection.number < log.connection)
    return refused(WireError::stale_connection, "a newer connection has appended");
  const bool same = log.instance == connection.instance && log.connection == connection.number;
  if (entry.sequence != 0 && (!same || entry.sequence != log.next_sequence))
    return refused(WireError::out_of_order, "an earlier batch was not appended");
  if (refuse) {
    if (auto status = refuse(produced)) {
      result.status = std::move(*status);
      return result;
    }
  }
  const auto view = model::parse_produced(batch, model::batch_format::kBatchBytesMax);
  if (!view) return refused(WireError::corrupt_batch, view.error().message());
  const auto took = [&](std::uint64_t next_sequence) {
    log.instance = connection.instance;
    log.connection = connection.number;
    log.next_sequence = next_sequence;
  };
  if (view->producer().known()) {  // IDM-1, by the broker's own rule
    const auto verdict =
        replication::check_sequence(log.producers->find(view->producer_id()), *view);
    if (verdict.refusal) {
      took(0);
      return refused(wire_error(verdict.refusal), verdict.refusal.message());
    }
    if (verdict.repeat_of) {
      took(entry.sequence + 1);
      ++repeats;
      result.base_offset = verdict.repeat_of->base_offset;
      result.append_time_ms = verdict.repeat_of->append_time_ms;
      return result;
    }
  }
  if (view->batch_bytes() > topic->batch_bytes_max)
    return refused(WireError::batch_too_large, "too large");
  const std::uint32_t records = view->record_count();
  model::stamp(batch, model::Offset(log.end), model::LeaderEpoch(1), runtime_.wall_clock_ms());
  log.batches.emplace_back(base::as_text(batch));
  log.producers->note(*view);
  result.base_offset = model::Offset(log.end);
  result.append_time_ms = runtime_.wall_clock_ms();
  log.end += records;
  took(entry.sequence + 1);
  if (lose && lose(produced)) lost = true;
  return result;
}

protocol::FetchResult FakeBroker::read(const protocol::FetchEntry& entry, bool has_rack,
                                       std::string& payload) {
  protocol::FetchResult result;
  result.partition = entry.partition;
  Topic* topic = find(entry.partition.topic);
  if (topic == nullptr) {
    result.status = Status::of(WireError::unknown_topic_id, "no such topic id", broker_id);
    return result;
  }
  if (refuse_fetch) {
    if (auto status = refuse_fetch(topic->name)) {
      result.status = std::move(*status);
      return result;
    }
  }
  const Partition& log = topic->partitions.at(static_cast<std::size_t>(entry.partition.partition));
  const bool any_replica = has_rack && !entry.of_leader;
  const bool follows = !leads(log);
  if (follows && !(any_replica && cluster_->nearer == broker_id)) {
    result.status = Status::of(WireError::not_leader, "another broker leads it", broker_id);
    return result;
  }
  const std::int64_t end = follows ? std::min(log.end, cluster_->nearer_end) : log.end;
  if (follows && entry.offset.value() > end) {
    result.status = Status::of(WireError::offset_not_available, "not here yet", broker_id);
    return result;
  }
  if (!follows && any_replica && cluster_->nearer != broker_id)
    result.nearer_replica = cluster_->nearer;
  result.high_watermark = model::Offset(end);
  result.log_start_offset = model::Offset(log.start);
  if (entry.offset.value() < log.start || entry.offset.value() > log.end) {
    result.status = Status::of(WireError::offset_out_of_range,
                               fmt::format("the log has [{}, {})", log.start, log.end), broker_id);
    return result;
  }
  std::size_t bytes = 0;
  for (const std::string& batch : log.batches) {
    const auto view = model::RecordBatchView::parse_header(base::as_bytes(batch));
    if (view && view->end_offset() <= entry.offset) continue;
    if (view && view->end_offset().value() > end) break;
    if (bytes > 0 && bytes + batch.size() > entry.bytes_max) break;
    payload += batch;
    bytes += batch.size();
  }
  result.payload_bytes = static_cast<std::uint32_t>(bytes);
  return result;
}

asio::awaitable<void> FakeBroker::fetch(ConnectionPtr connection, net::Frame frame) {
  ++fetch_requests;
  const auto request = protocol::decode_fetch_request(frame.header);
  fetch_entries.push_back(request->entries.size());
  const base::TimePoint until = runtime_.now() + std::chrono::milliseconds(request->wait_ms);
  while (!stopped_) {
    protocol::FetchResponse response;
    response.envelope.metadata_version = image().version;
    std::string payload;
    bool any_error = false;
    for (const auto& entry : request->entries) {
      response.results.push_back(read(entry, !request->rack.empty(), payload));
      const auto& result = response.results.back();
      any_error = any_error || !result.status.ok() || result.nearer_replica >= 0;
    }
    if (!payload.empty() || any_error || runtime_.now() >= until) {
      fetched_bytes += payload.size();
      answer(*connection, frame.head, protocol::encode(response), std::move(payload));
      break;
    }
    co_await appended_.wait_until(until);
  }
}

void FakeBroker::look_up_time(const Partition& log, std::int64_t time_ms,
                              protocol::ListOffsetsResult& result) {
  for (const std::string& batch : log.batches) {
    const auto view = model::RecordBatchView::parse_header(base::as_bytes(batch));
    if (view->append_time_ms() < time_ms) continue;
    result.offset = view->base_offset();
    result.append_time_ms = view->append_time_ms();
    return;
  }
}

void FakeBroker::list_offsets(Connection& connection, const net::Frame& frame) {
  ++offset_requests;
  const auto request = protocol::decode_list_offsets_request(frame.header);
  protocol::ListOffsetsResponse response;
  for (const auto& entry : request->entries) {
    protocol::ListOffsetsResult result;
    result.partition = entry.partition;
    if (Topic* topic = find(entry.partition.topic)) {
      const auto& log = topic->partitions.at(static_cast<std::size_t>(entry.partition.partition));
      if (const auto refused = refuse_offsets ? refuse_offsets() : std::nullopt) {
        result.status = *refused;
        response.results.push_back(std::move(result));
        continue;
      }
      if (!leads(log)) {
        result.status = Status::of(WireError::not_leader, "another broker leads it", broker_id);
        response.results.push_back(std::move(result));
        continue;
      }
      const bool earliest = entry.point == protocol::OffsetPoint::earliest;
      result.offset = model::Offset(earliest ? log.start : log.end);
      if (entry.point == protocol::OffsetPoint::at_time) {
        EXPECT_EQ(frame.head.api_version, protocol::kListOffsetsByTime);
        look_up_time(log, entry.time_ms, result);
      }
    } else {
      result.status = Status::of(WireError::unknown_topic_id, "no such topic id", broker_id);
    }
    response.results.push_back(std::move(result));
  }
  answer(connection, frame.head, protocol::encode(response));
}

}  // namespace mq::testing
