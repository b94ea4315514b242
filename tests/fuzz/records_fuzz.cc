// Records inside a batch whose header is right: count, last offset delta, then the bytes.
#include "fuzz/batch_walk.h"
#include "unit/model/batch_samples.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace mq;
  fuzz::Input input(data, size);
  const auto count = input.number<std::uint16_t>();
  const auto delta = input.number<std::uint16_t>();
  const std::string batch =
      model::testing::wrap(base::as_text(input.rest()), count, std::uint32_t{delta});
  const auto view = model::RecordBatchView::parse(base::as_bytes(batch));
  if (view) fuzz::walk(*view, view->records());
  return 0;
}
