#include "mq/record.h"

namespace mq {
inline namespace v1 {
namespace {

template <class Container>
Blob own(Container container) {
  auto kept = std::make_shared<const Container>(std::move(container));
  const Bytes bytes = std::as_bytes(std::span(*kept));
  return Blob::borrow(bytes, std::move(kept));
}

}  // namespace

Blob::Blob(std::string text) { *this = own(std::move(text)); }
Blob::Blob(const char* text) { *this = own(std::string(text)); }
Blob::Blob(std::vector<std::byte> bytes) { *this = own(std::move(bytes)); }

Blob Blob::copy_of(Bytes bytes) { return own(std::vector<std::byte>(bytes.begin(), bytes.end())); }

Blob Blob::borrow(Bytes bytes, std::shared_ptr<const void> keep_alive) {
  Blob blob;
  blob.bytes_ = bytes;
  blob.keep_ = std::move(keep_alive);
  return blob;
}

Record RecordView::to_owned() const {
  Record record{std::string(topic)};
  if (key) record = std::move(record).key(Blob::copy_of(*key));
  if (value) record = std::move(record).value(Blob::copy_of(*value));
  for (const HeaderView& header : headers) {
    std::optional<Blob> copy;
    if (header.value) copy = Blob::copy_of(*header.value);
    record = std::move(record).header(std::string(header.name), std::move(copy));
  }
  record = std::move(record).partition(partition);
  record = std::move(record).timestamp(timestamp);
  return record;
}

}  // namespace v1
}  // namespace mq
