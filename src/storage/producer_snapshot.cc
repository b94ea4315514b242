#include "storage/producer_snapshot.h"

#include <limits>

#include "storage/sealed_file.h"
#include "storage/storage_format.h"

namespace mq::storage {
namespace {

using model::Offset;

constexpr std::size_t kBatchBytes = 28;
constexpr std::size_t kProducerBytes = 16;  // with no batch

Error malformed() { return make_error_code(base::BaseErrc::malformed); }

void put_batch(FieldWriter& out, const ProducerBatch& batch) {
  out.put(batch.base_sequence);
  out.put(batch.last_offset_delta);
  out.put(batch.base_offset.value());
  out.put(batch.append_time_ms);
  out.put(batch.body_crc);
}

ProducerBatch take_batch(FieldReader& in) {
  ProducerBatch batch;
  batch.base_sequence = in.take<std::int32_t>();
  batch.last_offset_delta = in.take<std::uint32_t>();
  batch.base_offset = Offset(in.take<std::int64_t>());
  batch.append_time_ms = in.take<std::int64_t>();
  batch.body_crc = in.take<std::uint32_t>();
  return batch;
}

/// Whatever the checksum says, numbers are bounded before they are reckoned with.
bool fits(const ProducerBatch& batch, const ProducerState& before, Offset end_offset,
          std::int64_t newest_ms) {
  constexpr auto kDeltaMax = static_cast<std::uint32_t>(std::numeric_limits<std::int32_t>::max());
  if (batch.base_sequence < 0 || batch.last_offset_delta > kDeltaMax) return false;
  if (batch.base_offset < Offset(0) || batch.base_offset >= end_offset) return false;
  if (batch.last_offset_delta >= end_offset.value() - batch.base_offset.value()) return false;
  if (batch.append_time_ms < -1 || batch.append_time_ms > newest_ms) return false;
  return before.empty() || (batch.base_sequence == before.next_sequence() &&
                            batch.base_offset >= before.newest().end_offset() &&
                            batch.append_time_ms >= before.newest().append_time_ms);
}

bool take_producer(FieldReader& in, ProducerSnapshot& snapshot) {
  model::ProducerIdentity producer;
  producer.id = in.take<std::int64_t>();
  producer.epoch = in.take<std::int32_t>();
  if (producer.id < 0 || producer.epoch < 0) return false;
  const auto batches = in.take_count(kBatchBytes);
  if (batches == 0 || batches > ProducerState::kWindow) return false;
  ProducerState state(producer);
  for (std::uint32_t i = 0; i < batches; ++i) {
    const ProducerBatch batch = take_batch(in);
    if (!fits(batch, state, snapshot.end_offset, snapshot.producers.times().newest())) return false;
    state.add(producer.epoch, batch);
  }
  return snapshot.producers.restore(state);
}

}  // namespace

std::vector<std::byte> encode_producer_snapshot(const model::PartitionId& partition,
                                                Offset end_offset, Offset segment_base,
                                                std::uint64_t position,
                                                const BatchPlace& last_batch,
                                                const ProducerTable& producers) {
  FieldWriter out;
  out.put_bytes(partition.topic.bytes());
  out.put(partition.partition);
  out.put(end_offset.value());
  out.put(segment_base.value());
  out.put(position);
  out.put(last_batch.segment_base.value());
  out.put(last_batch.position);
  out.put(last_batch.stamp_crc);
  for (const std::int64_t end : producers.times().ends()) out.put(end);
  out.put(static_cast<std::uint32_t>(producers.size()));
  for (const auto& state : producers.states()) {
    out.put(state.producer().id);
    out.put(state.producer().epoch);
    out.put(static_cast<std::uint32_t>(state.batches().size()));
    for (const auto& batch : state.batches()) put_batch(out, batch);
  }
  return {out.bytes().begin(), out.bytes().end()};
}

Result<ProducerSnapshot> decode_producer_snapshot(base::Bytes body) {
  FieldReader in(body);
  ProducerSnapshot snapshot;
  const auto topic = base::Uuid::from_bytes(in.take_bytes(16));
  snapshot.partition.partition = in.take<std::int32_t>();
  snapshot.end_offset = Offset(in.take<std::int64_t>());
  snapshot.segment_base = Offset(in.take<std::int64_t>());
  snapshot.position = in.take<std::uint64_t>();
  snapshot.last_batch.segment_base = Offset(in.take<std::int64_t>());
  snapshot.last_batch.position = in.take<std::uint64_t>();
  snapshot.last_batch.stamp_crc = in.take<std::uint32_t>();
  SettledTime::Ends ends;
  for (auto& end : ends) end = in.take<std::int64_t>();
  SettledTime times;
  if (!in.ok() || !topic || snapshot.end_offset < Offset(0) || !times.set_ends(ends))
    return malformed();
  snapshot.producers.set_times(times);
  snapshot.partition.topic = *topic;
  const auto producers = in.take_count(kProducerBytes + kBatchBytes);
  for (std::uint32_t i = 0; i < producers; ++i) {
    if (!take_producer(in, snapshot)) return malformed();
  }
  if (!in.finished()) return malformed();
  return snapshot;
}

Result<void> write_producer_snapshot(base::FileSystem& files, const std::string& path,
                                     base::Bytes body) {
  return write_cache_file(files, path, kProducersMagic, body);
}

Result<ProducerSnapshot> load_producer_snapshot(base::FileSystem& files, const std::string& path,
                                                const model::PartitionId& partition,
                                                Offset end_offset) {
  MQ_TRY(const auto body, load_sealed(files, path, kProducersMagic));
  MQ_TRY(auto snapshot, decode_producer_snapshot(body));
  if (snapshot.partition != partition || snapshot.end_offset != end_offset) return malformed();
  return snapshot;
}

}  // namespace mq::storage
