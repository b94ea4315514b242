// The worked examples of src/protocol/PROTOCOL.md, byte by byte, and its tables.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "model/record_batch_builder.h"
#include "protocol/frame.h"
#include "protocol/hello.h"
#include "protocol/produce.h"
#include "unit/hex_block.h"

namespace mq::protocol {
namespace {

const std::string kDocument = MQ_PROTOCOL_TEST_DIR "/../../../src/protocol/PROTOCOL.md";

std::string frame(ApiKey api, std::uint8_t flags, std::uint32_t correlation_id,
                  std::string_view header, std::uint32_t payload_bytes = 0) {
  FrameHead head;
  head.api_key = static_cast<std::uint16_t>(api);
  head.flags = flags;
  head.correlation_id = correlation_id;
  return encode_frame(head, header, payload_bytes);
}

model::PartitionId example_partition() {
  return {*base::Uuid::from_hex("00112233445546778899aabbccddeeff"), 2};
}

void expect_example(std::string_view heading, const std::string& bytes) {
  EXPECT_EQ(mq::testing::hex_lines(bytes),
            mq::testing::hex_lines(mq::testing::hex_block(kDocument, heading)));
}

TEST(GoldenFrames, FirstBytesOfAConnection) {
  HelloRequest request;
  request.envelope = {10'000, "", "app"};
  request.client_version = "0.1.0";
  request.client_instance = 0x0102030405060708;
  request.connection_number = 1;
  expect_example("Example 1", std::string(kPreface) + frame(ApiKey::hello, 0, 1, encode(request)));
}

TEST(GoldenFrames, ProduceRequest) {
  model::RecordBatchBuilder builder(base::BufferPool::shared(), 4096);
  ASSERT_TRUE(
      builder.append({.value = base::as_bytes("hello"), .timestamp_ms = 1'700'000'000'000}));
  const auto batch = builder.finish();
  ProduceRequest request;
  request.envelope.deadline_ms = 30'000;
  request.acks = Acks::all;
  request.entries = {{example_partition(), static_cast<std::uint32_t>(batch.bytes.size()), 0}};
  const auto payload_bytes = static_cast<std::uint32_t>(batch.bytes.size());
  expect_example("Example 2", frame(ApiKey::produce, 0, 7, encode(request), payload_bytes) +
                                  std::string(base::as_text(batch.bytes)));
}

TEST(GoldenFrames, ProduceResponse) {
  ProduceResponse response;
  response.envelope.status.broker = 1;
  response.envelope.metadata_version = 5;
  response.results = {
      {example_partition(), {}, model::Offset(41), 1'700'000'000'100, model::LeaderEpoch(3)}};
  expect_example("Example 3", frame(ApiKey::produce, kFrameResponse, 7, encode(response)));
}

TEST(GoldenFrames, RefusalOfAnApiThatNobodyKnows) {
  ResponseEnvelope refusal;
  refusal.status = Status::of(WireError::unsupported_api, "api 77", 1);
  expect_example("Example 4", frame(static_cast<ApiKey>(77), kFrameResponse, 9, encode(refusal)));
}

std::string document() {
  std::ifstream in(kDocument);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(ProtocolDocument, ListsEveryErrorOfTheWire) {
  const std::string text = document();
  const std::vector<std::pair<int, std::string>> rows{
#define MQ_ERROR(number, NAME, enumerator, flags, sentence, advice) \
  {number, "| " #number " | " #NAME " | " flags " | " sentence " |"},
#include "mq/errors.def"
  };
  for (const auto& [number, row] : rows) {
    const bool on_the_wire = number < 1000;
    EXPECT_TRUE(!on_the_wire || text.find(row) != std::string::npos) << row;
  }
}

TEST(ProtocolDocument, ListsEveryApi) {
  const std::string text = document();
  for (const auto& api : kSupportedApis) {
    const auto key = static_cast<std::uint16_t>(api.key);
    EXPECT_NE(text.find(fmt::format("| {} | {} |", key, api_name(key))), std::string::npos) << key;
  }
}

}  // namespace
}  // namespace mq::protocol
