#include "model/record_reader.h"

#include "model/varint.h"

namespace mq::model {
namespace {

/// Takes `bytes` bytes from [from, end); null when they are not there.
const std::byte* take(const std::byte* from, const std::byte* end, std::uint64_t bytes,
                      Bytes& taken) noexcept {
  if (bytes > static_cast<std::uint64_t>(end - from)) return nullptr;
  taken = Bytes(from, static_cast<std::size_t>(bytes));
  return from + bytes;
}

/// "uvarint n, 0 = null, else n - 1 bytes": null and empty stay different (LOG-7).
inline const std::byte* read_field(const std::byte* from, const std::byte* end,
                                   std::optional<Bytes>& field) noexcept {
  std::uint64_t length = 0;
  from = read_uvarint(from, end, length);
  if (!from) return nullptr;
  if (length == 0) {
    field.reset();
    return from;
  }
  Bytes taken;
  from = take(from, end, length - 1, taken);
  field = taken;
  return from;
}

const std::byte* read_header(const std::byte* from, const std::byte* end,
                             RecordHeaderView& header) noexcept {
  std::uint64_t length = 0;
  from = read_uvarint(from, end, length);
  if (!from) return nullptr;
  Bytes name;
  from = take(from, end, length, name);
  if (!from) return nullptr;
  header.name = base::as_text(name);
  return read_field(from, end, header.value);
}

/// Walks the headers once to see that they are whole and where they end.
const std::byte* read_headers(const std::byte* from, const std::byte* end,
                              RecordHeadersView& headers) noexcept {
  std::uint64_t count = 0;
  from = read_uvarint(from, end, count);
  if (!from || count == 0) {
    headers = RecordHeadersView();
    return from;
  }
  if (count > static_cast<std::uint64_t>(end - from) / 2) return nullptr;
  const std::byte* const first = from;
  RecordHeaderView header;
  for (std::uint64_t i = 0; i < count && from; ++i) from = read_header(from, end, header);
  if (from) headers = RecordHeadersView(first, from, static_cast<std::size_t>(count));
  return from;
}

}  // namespace

Result<base::SharedBytes> decompress(const RecordBatchView& batch, base::BufferPool& pool,
                                     std::uint32_t raw_bytes_max) {
  const std::size_t raw_bytes = batch.raw_bytes();
  if (raw_bytes > raw_bytes_max) return ModelErrc::too_large;
  const Bytes packed = batch.records();
  if (!plausible_raw_bytes(batch.codec(), packed, raw_bytes)) return ModelErrc::corrupt_records;
  if (batch.codec() == Codec::none) return base::SharedBytes{{}, packed};
  base::Buffer buffer = pool.take(raw_bytes);
  const MutableBytes out = buffer.bytes().first(raw_bytes);
  if (!decompress_exactly(batch.codec(), packed, out)) return ModelErrc::corrupt_records;
  return base::SharedBytes{std::move(buffer), out};
}

void RecordHeadersView::Iterator::load() noexcept {
  if (left_ != 0) from_ = read_header(from_, end_, current_);
}

RecordReader::RecordReader(const RecordBatchView& batch, Bytes records) noexcept
    : from_(records.data()),
      end_(records.data() + records.size()),
      records_left_(batch.record_count()),
      base_offset_(batch.base_offset().value()),
      base_timestamp_ms_(batch.base_timestamp_ms()),
      delta_max_(batch.last_offset_delta()) {}

RecordStep RecordReader::fail() noexcept {
  corrupt_ = true;
  return RecordStep::corrupt;
}

RecordStep RecordReader::finish() noexcept { return from_ == end_ ? RecordStep::end : fail(); }

RecordStep RecordReader::next(RecordView& record) noexcept {
  if (corrupt_) return RecordStep::corrupt;
  if (records_left_ == 0) return finish();
  std::uint64_t length = 0;
  const std::byte* from = read_uvarint(from_, end_, length);
  if (!from || length > static_cast<std::uint64_t>(end_ - from) || length == 0) return fail();
  const std::byte* const end = from + length;
  const auto attributes = static_cast<std::uint8_t>(*from++);
  std::uint64_t timestamp_delta = 0;
  std::uint64_t offset_delta = 0;
  if (!(from = read_uvarint(from, end, timestamp_delta))) return fail();
  if (!(from = read_uvarint(from, end, offset_delta))) return fail();
  if (offset_delta < delta_min_ || offset_delta > delta_max_) return fail();
  if (!(from = read_field(from, end, record.key))) return fail();
  if (!(from = read_field(from, end, record.value))) return fail();
  if (!(from = read_field(from, end, record.tag))) return fail();
  if (!(from = read_headers(from, end, record.headers))) return fail();
  // Every attribute bit announces an extension behind the headers; none is known yet, so they are
  // skipped. Without one, nothing may be left.
  if (attributes == 0 && from != end) return fail();
  record.offset = Offset(base_offset_ + static_cast<std::int64_t>(offset_delta));
  record.timestamp_ms =
      static_cast<std::int64_t>(static_cast<std::uint64_t>(base_timestamp_ms_) +
                                static_cast<std::uint64_t>(unzigzag(timestamp_delta)));
  delta_min_ = offset_delta + 1;
  from_ = end;
  --records_left_;
  return RecordStep::record;
}

}  // namespace mq::model
