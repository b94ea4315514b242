#include "fake_broker.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/check.h"
#include "model/record_reader.h"
#include "protocol/add_partitions.h"
#include "protocol/describe_broker.h"
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

struct FakeBroker::Connection {
  Connection(base::Runtime& runtime, std::unique_ptr<base::Stream> s)
      : stream(std::move(s)), reader(*stream, 32 << 20), writer(runtime, *stream) {}
  std::unique_ptr<base::Stream> stream;
  net::FrameReader reader;
  net::FrameWriter writer;
  std::uint64_t instance = 0;
  std::uint64_t number = 0;

  void close() {
    stream->close();
    writer.close();
  }
};

FakeBroker::FakeBroker(base::Runtime& runtime, base::Network& network, base::Endpoint at,
                       base::Endpoint advertised)
    : FakeBroker(runtime, network, std::move(at), std::move(advertised),
                 std::make_shared<Cluster>(), 1) {}

FakeBroker::FakeBroker(base::Runtime& runtime, base::Network& network, base::Endpoint at,
                       base::Endpoint advertised, ClusterPtr shared, std::int32_t id)
    : broker_id(id),
      runtime_(runtime),
      advertised_(std::move(advertised)),
      cluster_(std::move(shared)),
      appended_(runtime),
      tasks_(runtime) {
  auto acceptor = network.listen(at);
  MQ_CHECK(acceptor.has_value(), "the fake broker cannot listen: {}", acceptor.error().message());
  acceptor_ = std::move(*acceptor);
  if (advertised_.port == 0) advertised_.port = acceptor_->local().port;
  cluster_->brokers[broker_id] = advertised_;
  tasks_.spawn("fake broker", accept());
}

FakeBroker::~FakeBroker() = default;

FakeBroker::Topic& FakeBroker::add_topic(const std::string& name, int partitions,
                                         std::uint32_t batch_bytes_max) {
  Topic topic;
  topic.name = name;
  topic.id = base::Uuid::from_random(7, cluster_->next_topic++ << 8);
  topic.batch_bytes_max = batch_bytes_max;
  topic.partitions.resize(static_cast<std::size_t>(partitions));
  return cluster_->topics[name] = std::move(topic);
}

FakeBroker::Topic* FakeBroker::find(const base::Uuid& id) {
  for (auto& [name, topic] : cluster_->topics) {
    if (topic.id == id) return &topic;
  }
  return nullptr;
}

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

void FakeBroker::break_connections() {
  for (const auto& weak : connections_) {
    if (const auto connection = weak.lock()) connection->close();
  }
  connections_.clear();
}

asio::awaitable<void> FakeBroker::stop() {
  stopped_ = true;
  acceptor_->close();
  break_connections();
  appended_.notify_all();
  co_await tasks_.wait();
}

asio::awaitable<void> FakeBroker::accept() {
  while (!stopped_) {
    auto stream = co_await acceptor_->accept();
    if (!stream) break;
    ++accepted;
    auto connection = std::make_shared<Connection>(runtime_, std::move(*stream));
    if (close_at_once) {
      connection->close();
      continue;
    }
    connections_.push_back(connection);
    tasks_.spawn("fake broker writes", write(connection));
    tasks_.spawn("fake broker serves", serve(connection));
  }
}

asio::awaitable<void> FakeBroker::write(ConnectionPtr connection) {
  (void)co_await connection->writer.run();
  connection->close();
}

asio::awaitable<void> FakeBroker::serve(ConnectionPtr connection) {
  const auto preface = co_await connection->reader.read_raw(protocol::kPreface.size());
  if (!greeting.empty()) {
    net::OutgoingFrame foreign;
    foreign.head_and_header = greeting;
    connection->writer.push(std::move(foreign));
    connection->writer.finish();
    co_return;
  }
  if (!preface || *preface != protocol::kPreface) co_return connection->close();
  while (!stopped_) {
    auto frame = co_await connection->reader.next();
    if (!frame) break;
    const bool go_on = co_await handle(connection, std::move(*frame));
    if (!go_on) break;
  }
  connection->close();
}

asio::awaitable<bool> FakeBroker::handle(ConnectionPtr connection, net::Frame frame) {
  if (deaf) co_return true;
  const auto api = static_cast<protocol::ApiKey>(frame.head.api_key);
  if (api == protocol::ApiKey::hello) {
    hello(*connection, frame);
    co_return true;
  }
  if (silent) co_return true;
  switch (api) {
    case protocol::ApiKey::metadata:
      tasks_.spawn("fake metadata", metadata(connection, std::move(frame)));
      co_return true;
    case protocol::ApiKey::init_producer:
      init_producer(*connection, frame);
      co_return true;
    case protocol::ApiKey::produce:
      co_return co_await produce(connection, std::move(frame));
    case protocol::ApiKey::fetch:
      tasks_.spawn("fake fetch", fetch(connection, std::move(frame)));
      co_return true;
    case protocol::ApiKey::list_offsets:
      list_offsets(*connection, frame);
      co_return true;
    case protocol::ApiKey::create_topics:
      create_topics(*connection, frame);
      co_return true;
    case protocol::ApiKey::delete_topics:
      delete_topics(*connection, frame);
      co_return true;
    case protocol::ApiKey::alter_topics:
      alter_topics(*connection, frame);
      co_return true;
    case protocol::ApiKey::add_partitions:
      add_partitions(*connection, frame);
      co_return true;
    case protocol::ApiKey::list_topics:
      list_topics(*connection, frame);
      co_return true;
    case protocol::ApiKey::describe_topics:
      describe_topics(*connection, frame);
      co_return true;
    case protocol::ApiKey::describe_broker:
      describe_broker(*connection, frame);
      co_return true;
    default: {
      protocol::ResponseEnvelope envelope;
      envelope.status =
          Status::of(WireError::unsupported_api, "the fake broker has no such api", broker_id);
      answer(*connection, frame.head, protocol::encode(envelope));
      co_return true;
    }
  }
}

void FakeBroker::answer(Connection& connection, const protocol::FrameHead& request,
                        const std::string& header, std::string payload, bool more) {
  protocol::FrameHead head;
  head.api_key = request.api_key;
  head.api_version = request.api_version;
  head.flags = static_cast<std::uint8_t>(protocol::kFrameResponse |
                                         (more ? protocol::kFrameMoreFollows : 0));
  head.correlation_id = request.correlation_id;
  net::OutgoingFrame frame;
  frame.head_and_header =
      protocol::encode_frame(head, header, static_cast<std::uint32_t>(payload.size()));
  frame.head_and_header += payload;
  connection.writer.push(std::move(frame));
}

void FakeBroker::hello(Connection& connection, const net::Frame& frame) {
  const auto request = protocol::decode_hello_request(frame.header);
  connection.instance = request->client_instance;
  connection.number = request->connection_number;
  protocol::HelloResponse response;
  response.broker_version = "fake";
  response.broker_id = broker_id;
  response.cluster_id = cluster;
  response.apis.assign(protocol::kSupportedApis.begin(), protocol::kSupportedApis.end());
  response.frame_bytes_max = 23 << 20;
  response.batch_bytes_max = 16 << 20;
  answer(connection, frame.head, protocol::encode(response));
}

void FakeBroker::thaw_image() {
  frozen_.reset();
  appended_.notify_all();
}

bool FakeBroker::leads(const Partition& partition) const {
  return partition.leader == kWhoeverIsAsked || partition.leader == broker_id;
}

asio::awaitable<void> FakeBroker::metadata(ConnectionPtr connection, net::Frame frame) {
  ++metadata_requests;
  const auto request = protocol::decode_metadata_request(frame.header);
  metadata_asked = request->topics;
  const base::TimePoint until =
      runtime_.now() + std::chrono::milliseconds(request->envelope.deadline_ms);
  while (!stopped_ && image().version > 0 && image().version <= request->newer_than &&
         runtime_.now() < until)
    co_await appended_.wait_until(until);
  answer_metadata(*connection, frame, *request);
}

void FakeBroker::answer_metadata(Connection& connection, const net::Frame& frame,
                                 const protocol::MetadataRequest& request) {
  protocol::MetadataResponse response;
  if (refuse_metadata) {
    if (const auto status = refuse_metadata()) response.envelope.status = *status;
  }
  response.envelope.metadata_version = image().version;
  response.cluster_id = cluster;
  response.controller = image().controller;
  for (const auto& [id, address] : image().brokers)
    response.brokers.push_back({id, address.host, address.port, image().away.contains(id)});
  for (const std::string& name : request.topics) {
    protocol::TopicMetadata topic;
    topic.name = name;
    const auto found = image().topics.find(name);
    if (found == image().topics.end()) {
      topic.status = Status::of(WireError::unknown_topic,
                                fmt::format("there is no topic '{}'", name), broker_id);
    } else {
      const Topic& known = found->second;
      if (!known.ready && topics_ready_after-- <= 0) cluster_->topics.at(name).ready = true;
      topic.id = known.id;
      topic.batch_bytes_max = known.batch_bytes_max;
      for (std::size_t i = 0; i < known.partitions.size(); ++i) {
        const Partition& log = known.partitions[i];
        protocol::PartitionMetadata partition;
        partition.partition = static_cast<std::int32_t>(i);
        partition.leader = log.leader == kWhoeverIsAsked ? broker_id : log.leader;
        if (!known.ready) partition.leader = -1;
        partition.leader_epoch = log.leader_epoch;
        topic.partitions.push_back(partition);
      }
    }
    response.topics.push_back(std::move(topic));
  }
  const auto parts = protocol::encode_in_parts(response);
  for (int i = 0; endless_metadata && i < 1200; ++i)
    answer(connection, frame.head, parts.front(), {}, true);
  for (std::size_t i = 0; i < parts.size(); ++i)
    answer(connection, frame.head, parts[i], {}, i + 1 < parts.size());
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

protocol::FetchResult FakeBroker::read(const protocol::FetchEntry& entry, std::string& payload) {
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
  if (!leads(log)) {
    result.status = Status::of(WireError::not_leader, "another broker leads it", broker_id);
    return result;
  }
  result.high_watermark = model::Offset(log.end);
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
      response.results.push_back(read(entry, payload));
      any_error = any_error || !response.results.back().status.ok();
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

Status FakeBroker::may_change() const {
  if (cluster_->controller == broker_id) return Status{};
  return Status::of(WireError::not_controller,
                    fmt::format("the controller is broker {}", cluster_->controller), broker_id);
}

void FakeBroker::create_topics(Connection& connection, const net::Frame& frame) {
  ++change_requests;
  const auto request = protocol::decode_create_topics_request(frame.header);
  protocol::CreateTopicsResponse response;
  for (const auto& wanted : request->topics) {
    protocol::TopicResult result;
    result.name = wanted.name;
    result.status = may_change();
    result.partitions = std::max(1, wanted.partitions);
    if (cluster_->topics.contains(wanted.name)) {
      result.status = Status::of(WireError::topic_exists, "it exists", broker_id);
    } else if (result.status.ok() && !request->validate_only) {
      Topic& topic = add_topic(wanted.name, result.partitions);
      topic.ready = false;
      result.id = topic.id;
      if (cluster_->version > 0) ++cluster_->version;
    }
    response.results.push_back(std::move(result));
  }
  response.envelope.metadata_version = cluster_->version;
  answer(connection, frame.head, protocol::encode(response));
}

void FakeBroker::delete_topics(Connection& connection, const net::Frame& frame) {
  ++change_requests;
  const auto request = protocol::decode_delete_topics_request(frame.header);
  protocol::DeleteTopicsResponse response;
  for (const std::string& name : request->names) {
    protocol::TopicResult result;
    result.name = name;
    result.status = may_change();
    if (result.status.ok() && cluster_->topics.erase(name) == 0)
      result.status = Status::of(WireError::unknown_topic, "there is none", broker_id);
    if (result.status.ok() && cluster_->version > 0) ++cluster_->version;
    response.results.push_back(std::move(result));
  }
  response.envelope.metadata_version = cluster_->version;
  answer(connection, frame.head, protocol::encode(response));
}

void FakeBroker::alter_topics(Connection& connection, const net::Frame& frame) {
  ++change_requests;
  const auto request = protocol::decode_alter_topics_request(frame.header);
  protocol::AlterTopicsResponse response;
  for (const auto& wanted : request->topics) {
    protocol::TopicResult result;
    result.name = wanted.name;
    result.status = may_change();
    if (result.status.ok()) altered = wanted;
    if (result.status.ok() && cluster_->version > 0) ++cluster_->version;
    response.results.push_back(std::move(result));
  }
  response.envelope.metadata_version = cluster_->version;
  answer(connection, frame.head, protocol::encode(response));
}

void FakeBroker::add_partitions(Connection& connection, const net::Frame& frame) {
  ++change_requests;
  const auto request = protocol::decode_add_partitions_request(frame.header);
  protocol::AddPartitionsResponse response;
  for (const auto& wanted : request->topics) {
    protocol::TopicResult result;
    result.name = wanted.name;
    result.status = may_change();
    if (result.status.ok()) {
      Topic& topic = cluster_->topics.at(wanted.name);
      topic.partitions.resize(static_cast<std::size_t>(wanted.total));
      for (Partition& partition : topic.partitions) {
        if (partition.leader == kWhoeverIsAsked) partition.leader = broker_id;
      }
      result.partitions = wanted.total;
      if (cluster_->version > 0) ++cluster_->version;
    }
    response.results.push_back(std::move(result));
  }
  response.envelope.metadata_version = cluster_->version;
  answer(connection, frame.head, protocol::encode(response));
}

void FakeBroker::list_topics(Connection& connection, const net::Frame& frame) {
  ++describe_requests;
  protocol::ListTopicsResponse response;
  response.envelope.metadata_version = image().version;
  for (const auto& [name, topic] : image().topics) {
    protocol::TopicSummary summary;
    summary.name = name;
    summary.id = topic.id;
    summary.partitions = static_cast<std::int32_t>(topic.partitions.size());
    summary.replicas = 1;
    for (const Partition& partition : topic.partitions) {
      if (!leads(partition)) continue;
      ++summary.partitions_led;
      summary.bytes += 1000;
      summary.records += static_cast<std::uint64_t>(partition.end);
    }
    response.topics.push_back(std::move(summary));
  }
  answer(connection, frame.head, protocol::encode(response));
}

void FakeBroker::describe_topics(Connection& connection, const net::Frame& frame) {
  ++describe_requests;
  const auto request = protocol::decode_describe_topics_request(frame.header);
  protocol::DescribeTopicsResponse response;
  response.envelope.metadata_version = image().version;
  for (const std::string& name : request->names) {
    protocol::TopicDescription description;
    description.name = name;
    const auto found = image().topics.find(name);
    if (found == image().topics.end()) {
      description.status = Status::of(WireError::unknown_topic, "there is none", broker_id);
      response.topics.push_back(std::move(description));
      continue;
    }
    description.id = found->second.id;
    for (std::size_t i = 0; i < found->second.partitions.size(); ++i) {
      const Partition& log = found->second.partitions[i];
      protocol::PartitionDescription partition;
      partition.partition = static_cast<std::int32_t>(i);
      partition.leader = log.leader == kWhoeverIsAsked ? broker_id : log.leader;
      partition.replicas = {log.leader < 0 ? 3 : log.leader};
      if (leads(log)) {
        partition.log_start_offset = log.start;
        partition.high_watermark = log.end;
        partition.log_end_offset = log.end;
      }
      description.partitions.push_back(std::move(partition));
    }
    response.topics.push_back(std::move(description));
  }
  answer(connection, frame.head, protocol::encode(response));
}

void FakeBroker::describe_broker(Connection& connection, const net::Frame& frame) {
  ++describe_requests;
  protocol::DescribeBrokerResponse response;
  response.broker_id = broker_id;
  response.controller = image().controller;
  answer(connection, frame.head, protocol::encode(response));
}

}  // namespace mq::testing
