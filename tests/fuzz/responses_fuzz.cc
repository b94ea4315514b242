// Every response header, as a client reads it, and the envelope that all of them share.
#include "fuzz/message_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const mq::fuzz::Input input(data, size);
  mq::fuzz::check_one_of<mq::protocol::testing::Responses>(input);
  mq::fuzz::Input envelope = input;
  (void)envelope.number<std::uint8_t>();
  (void)mq::protocol::decode_envelope(envelope.rest()).has_value();
  return 0;
}
