#include "broker_world.h"

#include "model/record_batch_builder.h"

namespace mq::testing {

protocol::Status Answer::status() const {
  auto envelope = protocol::decode_envelope(header_bytes());
  if (!envelope) throw std::runtime_error("the answer's header does not parse");
  return envelope->status;
}

RawClient::RawClient(Simulator& simulator, std::unique_ptr<base::Stream> stream)
    : simulator_(simulator),
      stream_(std::move(stream)),
      reader_(*stream_, protocol::kBatchBytesHardMax + protocol::kFrameSlackBytes) {}

void RawClient::send_bytes(std::string_view bytes) {
  const asio::const_buffer piece(bytes.data(), bytes.size());
  (void)run(simulator_, stream_->write_all(std::span(&piece, 1)));
}

std::uint32_t RawClient::send(protocol::ApiKey api, std::string_view header,
                              std::string_view payload, std::uint8_t flags) {
  protocol::FrameHead head;
  head.api_key = static_cast<std::uint16_t>(api);
  head.flags = flags;
  return send_head(head, header, payload);
}

std::uint32_t RawClient::send_head(protocol::FrameHead head, std::string_view header,
                                   std::string_view payload) {
  head.correlation_id = next_correlation_++;
  send_bytes(protocol::encode_frame(head, header, static_cast<std::uint32_t>(payload.size())) +
             std::string(payload));
  return head.correlation_id;
}

asio::awaitable<bool> RawClient::read_frame(std::shared_ptr<std::optional<Answer>> out) {
  const auto frame = co_await reader_.next();
  if (frame) {
    Answer answer;
    answer.head = frame->head;
    answer.header = std::string(base::as_text(frame->header));
    answer.payload.assign(frame->payload.begin(), frame->payload.end());
    *out = std::move(answer);
  }
  co_return true;
}

std::optional<Answer> RawClient::receive(base::Duration limit) {
  const auto out = std::make_shared<std::optional<Answer>>();
  const auto ended = start_for_outcome(simulator_.executor(), read_frame(out), [] {});
  simulator_.run_until([&] { return ended->value.has_value(); }, limit);
  return std::move(*out);
}

std::string RawClient::read_to_end() {
  std::string text;
  std::array<std::byte, 4096> bytes;
  const asio::mutable_buffer into(bytes.data(), bytes.size());
  while (true) {
    const auto got = run(simulator_, stream_->read_some(std::span(&into, 1)));
    if (!got) return text;
    text += base::as_text(base::Bytes(bytes).first(*got));
  }
}

bool RawClient::closed_within(base::Duration limit) {
  const auto began = simulator_.now();
  const auto answer = receive(limit);
  return !answer && simulator_.now() - began < limit;
}

Answer RawClient::hello(std::uint64_t instance, std::uint64_t connection) {
  send_bytes(protocol::kPreface);
  protocol::HelloRequest hello;
  hello.envelope.client_name = "test";
  hello.client_instance = instance;
  hello.connection_number = connection;
  return call(protocol::ApiKey::hello, protocol::encode(hello));
}

Answer RawClient::call(protocol::ApiKey api, std::string_view header, std::string_view payload) {
  const auto correlation = send(api, header, payload);
  auto answer = receive();
  if (!answer) throw std::runtime_error("no answer");
  if (answer->head.correlation_id != correlation) throw std::runtime_error("another's answer");
  return *std::move(answer);
}

BrokerWorld::BrokerWorld(std::uint64_t seed, std::size_t workers)
    : simulator(seed), network(simulator), client_runtime(simulator) {
  for (std::size_t i = 0; i < workers; ++i)
    runtimes.push_back(std::make_unique<SimRuntime>(simulator));
  client_network = network.join("client", client_runtime);
  config.id = model::BrokerId(1);
  config.metadata = "local";
  config.disks = {"/data"};
  config.listener.bind = {"127.0.0.1", 9500};
  config.listener.advertised = {"broker", 9500};
}

BrokerWorld::~BrokerWorld() {
  if (broker) (void)stop();
}

base::Result<void> BrokerWorld::start() {
  executor = std::make_unique<SimDiskExecutor>(simulator, disk_times);
  broker_network = network.join("broker", *runtimes.front());
  broker::BrokerParts parts;
  parts.config = config;
  parts.limits = limits;
  for (const auto& runtime : runtimes) parts.workers.push_back(runtime.get());
  parts.network = broker_network.get();
  parts.move_stream = [](std::unique_ptr<base::Stream> stream,
                         std::size_t) -> base::Result<std::unique_ptr<base::Stream>> {
    return stream;
  };
  parts.files = &disk;
  parts.disk_executor = executor.get();
  parts.counters = &counters;
  parts.open_metadata = [this](std::string) { return open_store(); };
  parts.boot_id = "boot";
  if (adjust) adjust(parts);
  broker = std::make_unique<broker::Broker>(std::move(parts));
  return run(simulator, broker->start());
}

asio::awaitable<base::Result<std::unique_ptr<metadata::MetadataStore>>> BrokerWorld::open_store() {
  co_return metadata::open_memory_store(metadata, *runtimes.front());
}

base::Result<void> BrokerWorld::stop() {
  auto stopped = run(simulator, broker->stop());
  broker.reset();
  // What was posted and refers to nothing any more.
  simulator.run_for(std::chrono::milliseconds(1));
  executor.reset();
  broker_network.reset();
  return stopped;
}

RawClient BrokerWorld::connect() {
  const base::Endpoint to{"broker", 9500};
  auto stream = run(simulator, client_network->connect(
                                   to, simulator.now() + base::Duration(std::chrono::seconds(5))));
  if (!stream) throw std::runtime_error("cannot connect: " + stream.error().message());
  return {simulator, *std::move(stream)};
}

RawClient BrokerWorld::client(std::uint64_t instance, std::uint64_t connection) {
  auto made = connect();
  made.hello(instance, connection);
  return made;
}

base::Uuid BrokerWorld::create_topic(const std::string& name, std::int32_t partitions,
                                     const std::string& durability) {
  auto client = connect();
  client.hello(99);
  protocol::NewTopic topic;
  topic.name = name;
  topic.partitions = partitions;
  topic.settings["durability"] = durability;
  protocol::CreateTopicsRequest request;
  request.topics.push_back(std::move(topic));
  const auto answer = client.call(protocol::ApiKey::create_topics, protocol::encode(request));
  const auto response = protocol::decode_create_topics_response(answer.header_bytes());
  if (!response || !response->results.at(0).status.ok())
    throw std::runtime_error("the topic cannot be created");
  return response->results[0].id;
}

std::int64_t BrokerWorld::counter(const std::string& name) const {
  const auto all = counters.snapshot();
  const auto found = all.find(name);
  return found == all.end() ? 0 : found->second;
}

std::string make_batch(int records, std::size_t bytes) {
  model::RecordBatchBuilder builder(base::BufferPool::shared(), 16U << 20);
  const std::string value(bytes, 'v');
  for (int i = 0; i < records; ++i) {
    model::RecordInput record;
    record.timestamp_ms = 1000 + i;
    record.value = base::as_bytes(value);
    if (!builder.append(record)) throw std::runtime_error("the batch is full");
  }
  const auto batch = builder.finish();
  return std::string(base::as_text(batch.bytes));
}

}  // namespace mq::testing
