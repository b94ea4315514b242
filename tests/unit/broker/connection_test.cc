#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "broker_world.h"

namespace mq::broker {
namespace {

using protocol::ApiKey;
using protocol::WireError;
using std::chrono::seconds;
using testing::BrokerWorld;
using ::testing::HasSubstr;

struct ConnectionTest : ::testing::Test {
  BrokerWorld world;
  void SetUp() override { ASSERT_TRUE(world.start()) << world.broker->refusal().text; }

  static std::string metadata_request() {
    protocol::MetadataRequest request;
    request.all_topics = true;
    return protocol::encode(request);
  }
};

TEST_F(ConnectionTest, HelloNamesBrokerClusterAndLimits) {
  auto client = world.connect();
  const auto answer = client.hello();
  const auto hello = protocol::decode_hello_response(answer.header_bytes());
  ASSERT_TRUE(hello);
  EXPECT_TRUE(hello->envelope.status.ok());
  EXPECT_EQ(hello->broker_id, 1);
  EXPECT_EQ(hello->cluster_id, world.broker->core().cluster_id);
  EXPECT_FALSE(hello->cluster_id.is_zero());
  EXPECT_EQ(hello->batch_bytes_max, 1U << 20);
  EXPECT_EQ(hello->frame_bytes_max, 8U << 20);
  EXPECT_EQ(hello->apis.size(), protocol::kSupportedApis.size());
}

TEST_F(ConnectionTest, AnotherClusterIsRefused) {
  auto client = world.connect();
  client.send_bytes(protocol::kPreface);
  protocol::HelloRequest hello;
  hello.cluster_id = base::Uuid::from_random(1, 2);
  const auto answer = client.call(ApiKey::hello, protocol::encode(hello));
  EXPECT_EQ(answer.status().error(), WireError::wrong_cluster);
}

TEST_F(ConnectionTest, HelloComesFirst) {
  auto client = world.connect();
  client.send_bytes(protocol::kPreface);
  EXPECT_EQ(client.call(ApiKey::metadata, metadata_request()).status().error(),
            WireError::hello_required);
  protocol::HelloRequest hello;
  EXPECT_TRUE(client.call(ApiKey::hello, protocol::encode(hello)).status().ok());
  EXPECT_TRUE(client.call(ApiKey::metadata, metadata_request()).status().ok());
  EXPECT_EQ(client.call(ApiKey::hello, protocol::encode(hello)).status().error(),
            WireError::invalid_request);
}

// PRO-2
TEST_F(ConnectionTest, UnknownRequestsAndVersionsAreAnsweredAndTheConnectionGoesOn) {
  auto client = world.connect();
  client.hello();
  EXPECT_EQ(client.call(static_cast<ApiKey>(77), "").status().error(), WireError::unsupported_api);
  protocol::FrameHead head;
  head.api_key = static_cast<std::uint16_t>(ApiKey::metadata);
  head.api_version = 9;
  client.send_head(head, "");
  const auto answer = client.receive();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status().error(), WireError::unsupported_version);
  EXPECT_THAT(answer->status().text, HasSubstr("Metadata version 9"));
  EXPECT_TRUE(client.call(ApiKey::metadata, metadata_request()).status().ok());
}

TEST_F(ConnectionTest, AHeaderThatDoesNotParseIsAnswered) {
  auto client = world.connect();
  client.hello();
  for (const auto& [key, min, max] : protocol::kSupportedApis) {
    const auto answer = client.call(key, "\xff\xff\xff");
    EXPECT_EQ(answer.status().error(), WireError::malformed_request)
        << protocol::api_name(static_cast<std::uint16_t>(key));
  }
  EXPECT_TRUE(client.call(ApiKey::metadata, metadata_request()).status().ok());
}

TEST_F(ConnectionTest, AnUnknownFlagClosesTheConnection) {
  auto client = world.connect();
  client.hello();
  protocol::FrameHead head;
  head.api_key = static_cast<std::uint16_t>(ApiKey::metadata);
  head.flags = 64;
  client.send_head(head, metadata_request());
  const auto answer = client.receive();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status().error(), WireError::malformed_request);
  EXPECT_TRUE(client.closed_within(seconds(1)));
}

TEST_F(ConnectionTest, ANoAnswerFlagOnAnythingButProduceClosesTheConnection) {
  auto client = world.connect();
  client.hello();
  client.send(ApiKey::metadata, metadata_request(), {}, protocol::kFrameNoAnswer);
  EXPECT_TRUE(client.closed_within(seconds(1)));
}

// PRO-1
TEST_F(ConnectionTest, AFrameAboveTheLimitIsRefusedBeforeItsBytesCome) {
  for (const std::uint32_t claimed : {0x7fffffffU, 0xffffffffU, (64U << 10) + 1}) {
    auto client = world.connect();
    client.send_bytes(protocol::kPreface);
    std::string head(20, '\0');
    base::store_le<std::uint32_t>(reinterpret_cast<std::byte*>(head.data()), claimed);
    client.send_bytes(head);
    const auto answer = client.receive();
    ASSERT_TRUE(answer) << claimed;
    EXPECT_EQ(answer->status().error(), WireError::frame_too_large);
    EXPECT_TRUE(client.closed_within(seconds(1)));
  }
}

TEST_F(ConnectionTest, AFrameWithoutRoomForItsHeaderIsRefused) {
  auto client = world.connect();
  client.send_bytes(protocol::kPreface);
  client.send_bytes(std::string(20, '\0'));
  const auto answer = client.receive();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status().error(), WireError::malformed_request);
  EXPECT_TRUE(client.closed_within(seconds(1)));
}

TEST_F(ConnectionTest, AWrongChecksumClosesTheConnectionWithAnAnswer) {
  auto client = world.connect();
  client.hello();
  protocol::FrameHead head;
  head.api_key = static_cast<std::uint16_t>(ApiKey::metadata);
  std::string frame = protocol::encode_frame(head, metadata_request(), 0);
  frame[17] = static_cast<char>(frame[17] ^ 1);
  client.send_bytes(frame);
  const auto answer = client.receive();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status().error(), WireError::corrupt_frame);
  EXPECT_TRUE(client.closed_within(seconds(1)));
}

TEST_F(ConnectionTest, OtherProtocolsAreNamedAndClosed) {
  std::vector<std::string> lines;
  base::set_log_sink(
      [&](base::LogLevel, std::string_view, std::string_view text) { lines.emplace_back(text); });
  const std::string_view kafka("\0\0\0\x10\0\x12\0\x03\0\0\0\x01\0\x04test", 18);
  const std::string_view tls("\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03", 11);
  for (const std::string_view bytes : {std::string_view("GET / HTTP/1.1\r\n\r\n"), tls, kafka}) {
    auto client = world.connect();
    client.send_bytes(bytes);
    client.read_to_end();
  }
  for (int i = 0; i < 5; ++i) {
    auto client = world.connect();
    client.send_bytes("GET / HTTP/1.1\r\n\r\n");
    EXPECT_THAT(client.read_to_end(), HasSubstr("HTTP/1.1"));
  }
  base::set_log_sink({});
  ASSERT_EQ(lines.size(), 3U) << "one line for each protocol, not for each connection";
  EXPECT_THAT(lines[0], HasSubstr("HTTP"));
  EXPECT_THAT(lines[1], HasSubstr("TLS"));
  EXPECT_THAT(lines[2], HasSubstr("Kafka"));
  EXPECT_EQ(world.counter("foreign_protocols_total"), 8);
}

TEST_F(ConnectionTest, WhoeverSendsNothingIsClosedAfterTheHandshakeTime) {
  auto silent = world.connect();
  auto stalled = world.connect();
  stalled.send_bytes("MQP");
  const auto began = world.simulator.now();
  EXPECT_TRUE(silent.closed_within(seconds(12)));
  EXPECT_TRUE(stalled.closed_within(seconds(12)));
  EXPECT_GE(world.simulator.now() - began, seconds(10));
  EXPECT_EQ(world.counter("connections_open"), 0);
}

TEST_F(ConnectionTest, AFrameThatDoesNotEndIsClosedAfterItsTime) {
  auto client = world.connect();
  client.hello();
  protocol::FrameHead head;
  head.api_key = static_cast<std::uint16_t>(ApiKey::metadata);
  const std::string frame = protocol::encode_frame(head, metadata_request(), 1000);
  client.send_bytes(frame);
  const auto began = world.simulator.now();
  EXPECT_TRUE(client.closed_within(seconds(33)));
  EXPECT_GE(world.simulator.now() - began, seconds(30));
}

TEST_F(ConnectionTest, AnIdleConnectionIsClosedAndALongPollIsNotIdle) {
  auto idle = world.connect();
  idle.hello(1);
  EXPECT_TRUE(idle.closed_within(std::chrono::minutes(11)));
  EXPECT_EQ(world.counter("connections_open"), 0);
}

TEST_F(ConnectionTest, AThousandStalledConnectionsTakeNoMemory) {
  std::vector<testing::RawClient> clients;
  for (int i = 0; i < 1000; ++i) {
    clients.push_back(world.connect());
    clients.back().send_bytes("MQP");
  }
  EXPECT_EQ(world.counter("connections_open"), 1000);
  for (const auto& worker : world.broker->core().workers) {
    EXPECT_EQ(worker->request_budget().used(), 0U);
    EXPECT_EQ(worker->hello_budget().used(), 0U);
  }
  auto client = world.connect();
  EXPECT_TRUE(client.hello().status().ok());
}

// PRO-1
TEST_F(ConnectionTest, ClaimsBeforeHelloTakeNothingAndKeepNobodyOut) {
  std::vector<testing::RawClient> clients;
  protocol::FrameHead head;
  head.api_key = static_cast<std::uint16_t>(ApiKey::hello);
  const std::string claim =
      std::string(protocol::kPreface) + protocol::encode_frame(head, "", 60'000).substr(0, 20);
  for (int i = 0; i < 500; ++i) {
    clients.push_back(world.connect());
    clients.back().send_bytes(claim);
  }
  auto& worker = *world.broker->core().workers.front();
  EXPECT_LE(worker.hello_budget().used(), world.limits.hello_bytes);
  EXPECT_GT(worker.hello_budget().waiting(), 0U);
  EXPECT_EQ(worker.request_budget().used(), 0U);
  auto client = world.connect();
  EXPECT_TRUE(client.hello().status().ok());
  world.run_for(seconds(12));
  EXPECT_EQ(world.counter("connections_open"), 1);
  EXPECT_EQ(worker.hello_budget().used(), 0U);
}

TEST_F(ConnectionTest, MetadataWaitsForANewerImage) {
  auto client = world.connect();
  client.hello();
  protocol::MetadataRequest request;
  request.all_topics = true;
  request.envelope.deadline_ms = 5000;
  const auto now = client.call(ApiKey::metadata, protocol::encode(request));
  const auto first = protocol::decode_metadata_response(now.header_bytes());
  ASSERT_TRUE(first);
  request.newer_than = first->envelope.metadata_version;
  client.send(ApiKey::metadata, protocol::encode(request));
  world.run_for(seconds(1));
  world.create_topic("orders");
  auto answer = client.receive(seconds(1));
  ASSERT_TRUE(answer);
  auto second = protocol::decode_metadata_response(answer->header_bytes());
  ASSERT_TRUE(second);
  EXPECT_GT(second->envelope.metadata_version, first->envelope.metadata_version);
  // A topic on its way is in images that do not show it yet.
  for (int i = 0; i < 3 && second->topics.empty(); ++i) {
    request.newer_than = second->envelope.metadata_version;
    answer = client.call(ApiKey::metadata, protocol::encode(request));
    second = protocol::decode_metadata_response(answer->header_bytes());
  }
  ASSERT_EQ(second->topics.size(), 1U);
  EXPECT_EQ(second->topics[0].name, "orders");
}

TEST_F(ConnectionTest, AnUnknownTopicGetsTheNearestName) {
  world.create_topic("orders");
  auto client = world.connect();
  client.hello();
  protocol::MetadataRequest request;
  request.topics = {"ordres", "orders"};
  const auto answer = client.call(ApiKey::metadata, protocol::encode(request));
  const auto response = protocol::decode_metadata_response(answer.header_bytes());
  ASSERT_TRUE(response);
  ASSERT_EQ(response->topics.size(), 2U);
  EXPECT_EQ(response->topics[0].status.error(), WireError::unknown_topic);
  EXPECT_THAT(response->topics[0].status.text, HasSubstr("did you mean \"orders\""));
  EXPECT_TRUE(response->topics[1].status.ok());
}

}  // namespace
}  // namespace mq::broker
