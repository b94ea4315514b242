#include "client/core/record_taker.h"

#include <fmt/format.h>

#include "client/core/error.h"
#include "model/error.h"

namespace mq::client {
namespace {

/// What a Batch keeps alive.
struct BatchData {
  std::vector<RecordView> records;
  std::vector<HeaderView> headers;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> with_headers;  // record, number of headers
  std::vector<base::Buffer> owners;
  std::vector<ReadPartitionPtr> partitions;  // for their names
};

Error bad_batch(const ReadPartition& partition, std::int64_t offset, const base::Error& cause) {
  const bool format = cause == model::ModelErrc::unsupported_format;
  Error error = make_error(
      format ? Errc::unsupported_format : Errc::corrupt_batch,
      fmt::format("{}/{}: the batch at offset {} cannot be read: {}", partition.name.topic,
                  partition.name.partition, offset, cause.message()));
  error.retriable = false;
  return error;
}

class Taker {
 public:
  Taker(FetchBuffer& buffer, BatchData& data, std::size_t records_max)
      : buffer_(buffer), data_(data), records_max_(records_max) {}

  /// Reads on where the partition stands; an error when its next batch is bad.
  std::optional<Error> read(const ReadPartitionPtr& partition) {
    data_.partitions.push_back(partition);
    std::int64_t position =
        partition->position;  // only this thread changes it while chunks are there
    std::optional<Error> error;
    bool kept = false;
    while (data_.records.size() < records_max_) {
      if (!partition->reader) {
        if (partition->left.empty()) break;
        kept = false;
        error = begin_batch(*partition, position);
        if (error) break;
      }
      if (!kept) {
        data_.owners.push_back(partition->records.owner ? partition->records.owner
                                                        : partition->current.owner);
        kept = true;
      }
      error = read_batch(*partition, position);
      if (error) break;
    }
    buffer_.advance(*partition, position);
    return error;
  }

 private:
  std::optional<Error> begin_batch(ReadPartition& partition, std::int64_t position) {
    const auto view = model::RecordBatchView::parse_first(partition.left);
    if (!view) return bad_batch(partition, position, view.error());
    auto records = model::decompress(*view, base::BufferPool::shared());
    if (!records) return bad_batch(partition, view->base_offset().value(), records.error());
    partition.records = std::move(*records);
    partition.left = partition.left.subspan(view->batch_bytes());
    partition.batch_end = view->end_offset().value();
    const std::size_t wanted =
        std::min<std::size_t>(records_max_, data_.records.size() + view->record_count());
    if (wanted > data_.records.capacity())
      data_.records.reserve(std::max(wanted, 2 * data_.records.capacity()));
    partition.reader.emplace(*view, partition.records.bytes);
    return std::nullopt;
  }

  std::optional<Error> read_batch(ReadPartition& partition, std::int64_t& position) {
    model::RecordView record;
    while (data_.records.size() < records_max_) {
      const model::RecordStep step = partition.reader->next(record);
      if (step != model::RecordStep::record) {
        partition.reader.reset();
        if (step == model::RecordStep::end) {
          position = std::max(position, partition.batch_end);
          return std::nullopt;
        }
        return bad_batch(partition, position, make_error_code(model::ModelErrc::corrupt_records));
      }
      // A batch may begin below what was asked for.
      if (record.offset.value() < position) continue;
      add(partition, record);
      position = record.offset.value() + 1;
    }
    return std::nullopt;
  }

  void add(const ReadPartition& partition, const model::RecordView& record) {
    RecordView& view = data_.records.emplace_back();
    view.topic = partition.name.topic;
    view.partition = partition.name.partition;
    view.offset = record.offset.value();
    view.timestamp = Timestamp(Duration(record.timestamp_ms));
    view.key = record.key;
    view.value = record.value;
    if (record.headers.empty()) return;
    data_.with_headers.emplace_back(static_cast<std::uint32_t>(data_.records.size() - 1),
                                    static_cast<std::uint32_t>(record.headers.size()));
    for (const auto& header : record.headers)
      data_.headers.push_back(HeaderView{header.name, header.value});
  }

  FetchBuffer& buffer_;
  BatchData& data_;
  std::size_t records_max_;
};

/// Spans into the vector of headers, which grows no more.
void link_headers(BatchData& data) {
  std::size_t at = 0;
  for (const auto& [record, count] : data.with_headers) {
    data.records[record].headers = std::span(data.headers).subspan(at, count);
    at += count;
  }
}

}  // namespace

std::optional<Result<Batch>> take_records(FetchBuffer& buffer, std::size_t records_max) {
  std::shared_ptr<BatchData> data;
  while (!data || data->records.size() < records_max) {
    std::optional<Error> error;
    const ReadPartitionPtr partition = buffer.take_next(error);
    if (!partition) break;
    if (!data) data = std::make_shared<BatchData>();
    if (!error) {
      Taker taker(buffer, *data, records_max);
      error = taker.read(partition);
      if (error) buffer.rest(*partition);
    }
    if (!error) continue;
    if (data->records.empty()) return Result<Batch>(std::move(*error));
    buffer.put_error(*partition, buffer.wanted(*partition).generation, std::move(*error));
    break;
  }
  if (!data || data->records.empty()) return std::nullopt;
  link_headers(*data);
  const std::span<const RecordView> records(data->records);
  return Result<Batch>(Batch(std::move(data), records));
}

}  // namespace mq::client
