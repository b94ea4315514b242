// Writes the first inputs of each fuzz target: one valid example of everything.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "protocol/frame.h"
#include "unit/model/batch_samples.h"
#include "unit/protocol/message_samples.h"

namespace {

using namespace mq;
namespace fs = std::filesystem;

void write(const fs::path& folder, const std::string& name, const std::string& bytes) {
  fs::create_directories(folder);
  std::ofstream(folder / name, std::ios::binary) << bytes;
}

template <class Messages>
void write_messages(const fs::path& folder) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (write(folder, "message-" + std::to_string(I),
           static_cast<char>(I) +
               encode(protocol::testing::sample<std::tuple_element_t<I, Messages>>())),
     ...);
  }
  (std::make_index_sequence<std::tuple_size_v<Messages>>());
}

template <class T>
std::string number(T value) {
  std::string bytes(sizeof value, '\0');
  base::store_le(reinterpret_cast<std::byte*>(bytes.data()), value);
  return bytes;
}

void write_frames(const fs::path& folder) {
  protocol::FrameHead head;
  head.api_key = 1;
  head.correlation_id = 1;
  const auto hello = protocol::testing::sample<protocol::HelloRequest>();
  write(folder, "hello", protocol::encode_frame(head, encode(hello), 0));
  write(folder, "payload", protocol::encode_frame(head, "", 100));
  write(folder, "preface", "MQP1");
  write(folder, "http", "GET / HTTP/1.1\r\n");
  write(folder, "tls", std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11));
  write(folder, "kafka", std::string("\x00\x00\x00\x2a\x00\x12\x00\x03\x00\x00\x00\x01", 12));
}

void write_batches(const fs::path& root) {
  for (const auto codec : {model::Codec::none, model::Codec::lz4, model::Codec::zstd}) {
    const std::string name(model::codec_name(codec));
    const auto batch = model::testing::build(model::testing::sample_records(), codec);
    write(root / "fuzz_batch", name, model::testing::copy(batch));
    const auto view = model::RecordBatchView::parse(batch.bytes);
    const std::string records(base::as_text(view->records()));
    if (codec == model::Codec::none) {
      write(root / "fuzz_records", "sample",
            number(std::uint16_t{4}) + number(std::uint16_t{3}) + records);
    } else {
      const char which = codec == model::Codec::lz4 ? '\0' : '\1';
      write(root / "fuzz_decompress", name, which + number(view->raw_bytes()) + records);
    }
  }
  const std::string extended("\x0a\x08\0\0\0\0\0\0\1\2\3", 11);
  write(root / "fuzz_records", "extension",
        number(std::uint16_t{1}) + number(std::uint16_t{0}) + extended);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: fuzz_make_seeds FOLDER\n");
    return 2;
  }
  const fs::path root = argv[1];
  write_frames(root / "fuzz_frame");
  write_messages<protocol::testing::Requests>(root / "fuzz_requests");
  write_messages<protocol::testing::Responses>(root / "fuzz_responses");
  write_batches(root);
  return 0;
}
