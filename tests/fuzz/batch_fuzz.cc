// A whole batch: as it comes, and with checksums made right.
#include "fuzz/batch_walk.h"

namespace {

using namespace mq;

void check(base::Bytes bytes) {
  (void)model::parse_produced(bytes, 1 << 20).has_value();
  (void)model::RecordBatchView::parse_header(bytes).has_value();
  const auto first = model::RecordBatchView::parse_first(bytes);
  if (!first) return;
  MQ_CHECK(first->bytes().size() == first->batch_bytes() && first->batch_bytes() <= bytes.size());
  MQ_CHECK(first->end_offset() > first->base_offset());
  const auto records = model::decompress(*first, base::BufferPool::shared(), 1 << 20);
  if (!records) return;
  MQ_CHECK(records->bytes.size() == first->raw_bytes());
  fuzz::walk(*first, records->bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const base::Bytes bytes = fuzz::Input(data, size).rest();
  check(bytes);
  std::string sealed(base::as_text(bytes));
  if (sealed.size() >= 12) {
    base::store_le(reinterpret_cast<std::byte*>(sealed.data()) + model::batch_format::kBatchBytes,
                   static_cast<std::uint32_t>(sealed.size()));
  }
  fuzz::seal(sealed);
  check(base::as_bytes(sealed));
  return 0;
}
