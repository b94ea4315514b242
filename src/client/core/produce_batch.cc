#include "client/core/produce_batch.h"

#include <algorithm>
#include <cstring>
#include <exception>

#include "model/record_reader.h"

namespace mq::client {
namespace {

Timestamp to_timestamp(std::int64_t ms) { return Timestamp(Duration(ms < 0 ? 0 : ms)); }

Result<Delivery> delivery_of(const ProduceBatch& batch, std::uint32_t index,
                             const std::string& topic, std::int32_t partition) {
  if (batch.error.code != Errc::ok) return batch.error;
  Delivery delivery;
  delivery.topic = topic;
  delivery.partition = partition;
  delivery.offset = batch.base_offset < 0 ? -1 : batch.base_offset + index;
  delivery.timestamp = to_timestamp(batch.append_time_ms);
  delivery.attempts = batch.attempts;
  return delivery;
}

template <class Call>
void guarded(const std::function<void(const std::string&)>& caught, Call call) {
  try {
    call();
  } catch (const std::exception& e) {
    if (caught) caught(e.what());
  } catch (...) {
    if (caught) caught("an exception that is no std::exception");
  }
}

/// Where the records from `begin` on go when a batch is split there.
void move_dues(ProduceBatch& from, ProduceBatch& to, std::uint32_t begin, std::uint32_t end) {
  if (!from.cookies.empty())
    to.cookies.assign(from.cookies.begin() + begin, from.cookies.begin() + end);
  for (RecordCallback& callback : from.callbacks) {
    if (callback.index < begin || callback.index >= end) continue;
    to.callbacks.push_back(std::move(callback));
    to.callbacks.back().index -= begin;
  }
}

}  // namespace

void ProduceBatch::finish(model::Codec codec) {
  bytes = builder->finish(codec);
  builder.reset();
}

void ProduceBatch::finish_named(std::int64_t producer_id, model::Codec codec,
                                base::BufferPool& pool) {
  if (named) return;
  named = true;
  const model::ProducerIdentity producer{producer_id, producer_epoch};
  if (builder) {
    builder->set_producer(producer, base_sequence);
    return finish(codec);
  }
  const std::size_t size = bytes.bytes.size();
  base::Buffer copy = pool.take(size);
  std::memcpy(copy.data(), bytes.bytes.data(), size);
  model::set_producer(copy.bytes().first(size), producer, base_sequence);
  const base::Bytes view(copy.data(), size);
  bytes = {std::move(copy), view};
}

std::vector<ProduceBatchPtr> split(ProduceBatch& batch, base::BufferPool& pool,
                                   model::Codec codec) {
  if (batch.record_count < 2) return {};
  const auto view = model::RecordBatchView::parse(batch.bytes.bytes);
  if (!view) return {};
  const auto records = model::decompress(*view, pool);
  if (!records) return {};
  model::RecordReader reader(*view, records->bytes);

  std::vector<ProduceBatchPtr> halves;
  const std::uint32_t middle = batch.record_count / 2;
  std::uint32_t begin = 0;
  for (const std::uint32_t end : {middle, batch.record_count}) {
    auto half = std::make_shared<ProduceBatch>();
    half->partition = batch.partition;
    half->created = batch.created;
    half->deadline = batch.deadline;
    half->flush_epoch = batch.flush_epoch;
    half->attempts = batch.attempts;
    half->unanswered = batch.unanswered;
    half->producer_epoch = batch.producer_epoch;
    if (batch.base_sequence >= 0)
      half->base_sequence = model::advance_sequence(batch.base_sequence, begin);
    half->record_count = end - begin;
    half->buffered_bytes =
        begin == 0 ? batch.buffered_bytes / 2 : batch.buffered_bytes - batch.buffered_bytes / 2;
    half->builder.emplace(pool, model::batch_format::kBatchBytesMax,
                          static_cast<std::uint32_t>(records->bytes.size() / 2));
    for (std::uint32_t i = begin; i < end; ++i) {
      model::RecordView record;
      if (reader.next(record) != model::RecordStep::record) return {};
      std::vector<model::RecordHeader> headers;
      for (const auto& header : record.headers)
        headers.push_back(model::RecordHeader{header.name, header.value});
      const model::RecordInput input{record.key, record.value, record.timestamp_ms, record.tag,
                                     headers};
      if (!half->builder->append(input)) return {};
    }
    half->finish(codec);
    halves.push_back(std::move(half));
    begin = end;
  }
  move_dues(batch, *halves[0], 0, middle);
  move_dues(batch, *halves[1], middle, batch.record_count);
  return halves;
}

void deliver(ProduceBatch& batch, const std::string& topic, std::int32_t partition,
             const std::function<void(const DeliveryRange&)>& on_delivery,
             const std::function<void(const std::string&)>& caught) {
  const bool ranges = on_delivery && !batch.cookies.empty();
  const auto call_range = [&](std::uint32_t begin, std::uint32_t end) {
    if (!ranges || begin == end) return;
    const DeliveryRange range{topic,
                              partition,
                              batch.base_offset < 0 ? -1 : batch.base_offset + begin,
                              end - begin,
                              std::span(batch.cookies).subspan(begin, end - begin),
                              to_timestamp(batch.append_time_ms),
                              batch.attempts,
                              batch.error};
    guarded(caught, [&] { on_delivery(range); });
  };
  std::uint32_t begin = 0;
  for (RecordCallback& callback : batch.callbacks) {
    call_range(begin, callback.index);
    begin = callback.index + 1;
    if (callback.immediate || !callback.call) continue;
    guarded(caught, [&] { callback.call(delivery_of(batch, callback.index, topic, partition)); });
  }
  call_range(begin, batch.record_count);
}

void deliver_immediate(ProduceBatch& batch, const std::string& topic, std::int32_t partition) {
  for (RecordCallback& callback : batch.callbacks) {
    if (callback.immediate) callback.call(delivery_of(batch, callback.index, topic, partition));
  }
}

}  // namespace mq::client
