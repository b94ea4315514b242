// Every request header, as a broker reads it.
#include "fuzz/message_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  mq::fuzz::check_one_of<mq::protocol::testing::Requests>(mq::fuzz::Input(data, size));
  return 0;
}
