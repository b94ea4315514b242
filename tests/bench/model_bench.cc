// How fast batches are built, checked, stamped and read. Prints; asserts nothing: run it in a
// release build on an idle machine.
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "model/record_batch.h"
#include "model/record_batch_builder.h"
#include "model/record_reader.h"
#include "protocol/fetch.h"
#include "protocol/produce.h"

namespace {

using namespace mq;
using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kBatchBytes = 128 << 10;
constexpr auto kTime = std::chrono::milliseconds(500);

volatile std::uint64_t sink;

/// Repeats `work`, which says how many units it did, and prints units and bytes a second.
template <class Work>
void measure(const char* name, double bytes_per_unit, Work work) {
  for (int i = 0; i < 10; ++i) sink = sink + work();
  const auto start = Clock::now();
  std::uint64_t units = 0;
  while (Clock::now() - start < kTime) units += work();
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const double rate = static_cast<double>(units) / seconds;
  std::printf("%-34s %10.3f M/s %10.1f MiB/s\n", name, rate / 1e6,
              rate * bytes_per_unit / (1 << 20));
}

base::SharedBytes build(model::RecordBatchBuilder& builder, std::string_view key,
                        std::string_view value, model::Codec codec) {
  model::RecordInput record;
  if (!key.empty()) record.key = base::as_bytes(key);
  record.value = base::as_bytes(value);
  record.timestamp_ms = 1'700'000'000'000;
  while (builder.append(record)) ++record.timestamp_ms;
  return builder.finish(codec);
}

void bench_size(std::size_t value_bytes) {
  std::string value(value_bytes, '\0');
  std::uint64_t state = 1;
  for (char& c : value) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    c = static_cast<char>(state >> 56);
  }
  auto& pool = base::BufferPool::shared();
  const auto bytes = static_cast<double>(value_bytes);
  std::printf("records of %zu bytes, batches of 128 KiB\n", value_bytes);
  model::RecordBatchBuilder builder(pool, kBatchBytes);
  measure("  build, records", bytes, [&] {
    const auto batch = build(builder, "", value, model::Codec::none);
    return model::RecordBatchView::parse_header(batch.bytes)->record_count();
  });
  measure("  build with key, records", bytes + 16, [&] {
    const auto batch = build(builder, "0123456789abcdef", value, model::Codec::none);
    return model::RecordBatchView::parse_header(batch.bytes)->record_count();
  });
  const auto batch = build(builder, "", value, model::Codec::none);
  const auto batch_bytes = static_cast<double>(batch.bytes.size());
  measure("  parse_produced, batches", batch_bytes,
          [&] { return model::parse_produced(batch.bytes, kBatchBytes)->empty() ? 0u : 1u; });
  const base::MutableBytes writable(batch.owner.data(), batch.bytes.size());
  measure("  stamp, batches", batch_bytes, [&] {
    model::stamp(writable, model::Offset(1), model::LeaderEpoch(1), 1);
    return 1u;
  });
  const auto view = *model::RecordBatchView::parse(batch.bytes);
  measure("  read, records", bytes, [&] {
    model::RecordReader reader(view, view.records());
    model::RecordView record;
    std::uint64_t values = 0;
    while (reader.next(record) == model::RecordStep::record) values += record.value->size();
    sink = sink + values;
    return view.record_count();
  });
}

void bench_codecs() {
  std::string value;
  for (int i = 0; value.size() < 200; ++i) value += "field-" + std::to_string(i * 7919) + ";";
  model::RecordBatchBuilder builder(base::BufferPool::shared(), kBatchBytes);
  std::printf("codecs, records of %zu bytes of text\n", value.size());
  for (const auto codec : {model::Codec::lz4, model::Codec::zstd}) {
    const std::string name = "  build " + std::string(codec_name(codec)) + ", batches";
    measure(name.c_str(), kBatchBytes,
            [&] { return build(builder, "", value, codec).bytes.empty() ? 0u : 1u; });
    const auto batch = build(builder, "", value, codec);
    const auto view = *model::RecordBatchView::parse(batch.bytes);
    const std::string unpack = "  unpack " + std::string(codec_name(codec)) + ", batches";
    measure(unpack.c_str(), kBatchBytes,
            [&] { return decompress(view, base::BufferPool::shared())->bytes.empty() ? 0u : 1u; });
  }
}

void bench_headers() {
  std::printf("headers of one entry\n");
  const model::PartitionId partition{base::Uuid::from_random(1, 2), 3};
  protocol::ProduceRequest request;
  request.entries = {{partition, 131'072, 17}};
  const std::string header = encode(request);
  measure("  encode Produce", 0, [&] { return encode(request).empty() ? 0u : 1u; });
  measure("  decode Produce", 0, [&] {
    return protocol::decode_produce_request(base::as_bytes(header))->entries.empty() ? 0u : 1u;
  });
  protocol::FetchResponse response;
  response.results = {
      {partition, {}, model::Offset(9), model::Offset(0), model::LeaderEpoch(1), 4}};
  const std::string answer = encode(response);
  measure("  encode Fetch answer", 0, [&] { return encode(response).empty() ? 0u : 1u; });
  measure("  decode Fetch answer", 0, [&] {
    return protocol::decode_fetch_response(base::as_bytes(answer))->results.empty() ? 0u : 1u;
  });
}

}  // namespace

int main() {
  bench_size(100);
  bench_size(1024);
  bench_codecs();
  bench_headers();
  return 0;
}
