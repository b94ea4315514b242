#include "fake_broker.h"

#include "base/check.h"
#include "fake_broker_connection.h"

namespace mq::testing {

using protocol::Status;
using protocol::WireError;

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

void FakeBroker::break_connections() {
  for (const auto& weak : connections_) {
    if (const auto connection = weak.lock()) connection->close();
  }
  connections_.clear();
}

FakeBroker::~FakeBroker() = default;

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

}  // namespace mq::testing
