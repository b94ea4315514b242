// Each codec's decoder with an exact size: codec, size, then the packed bytes.
#include <vector>

#include "fuzz/fuzz_input.h"
#include "model/compression.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace mq;
  fuzz::Input input(data, size);
  const auto codec = input.number<std::uint8_t>() % 2 == 0 ? model::Codec::lz4 : model::Codec::zstd;
  const std::size_t raw_bytes = input.number<std::uint32_t>() % (std::size_t{1} << 16);
  const bool plausible = model::plausible_raw_bytes(codec, input.rest(), raw_bytes);
  std::vector<std::byte> out(raw_bytes);
  const bool unpacked = model::decompress_exactly(codec, input.rest(), out);
  // What is refused early must not be something that would have unpacked. (zstd may leave its size
  // out, which our format forbids.)
  MQ_CHECK(plausible || !unpacked || codec == model::Codec::zstd);
  return 0;
}
