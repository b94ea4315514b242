// The head of a frame, and what the first bytes of a connection are taken for.
#include <algorithm>
#include <string>

#include "fuzz/fuzz_input.h"
#include "protocol/frame.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace mq;
  const base::Bytes bytes = fuzz::Input(data, size).rest();
  const auto guess = protocol::recognise(bytes.first(std::min<std::size_t>(bytes.size(), 16)));
  MQ_CHECK(!protocol::foreign_protocol_name(guess).empty());
  MQ_CHECK(size < 8 || guess != protocol::ForeignProtocol::none_yet);
  if (size < protocol::kFrameHeadBytes) return 0;
  const base::Bytes head_bytes = bytes.first(protocol::kFrameHeadBytes);
  const auto head = protocol::decode_frame_head(head_bytes, 8 << 20);
  if (!head) return 0;
  MQ_CHECK(head->header_bytes <= protocol::kHeaderBytesMax);
  MQ_CHECK(16 + std::uint64_t{head->header_bytes} + head->payload_bytes() == head->frame_bytes);
  const base::Bytes body = bytes.subspan(protocol::kFrameHeadBytes);
  if (body.size() < head->header_bytes) return 0;
  const base::Bytes header = body.first(head->header_bytes);
  const bool valid = protocol::header_crc_matches(head_bytes, header);
  const std::string again =
      protocol::encode_frame(*head, base::as_text(header), head->payload_bytes());
  const bool same = again == base::as_text(bytes.first(again.size()));
  MQ_CHECK(valid == same);
  return 0;
}
