// The small files of a data directory: as they come, and with size and checksum made right.
#include <algorithm>

#include "base/check.h"
#include "base/crc32c.h"
#include "fuzz/fuzz_input.h"
#include "storage/disk_files.h"
#include "storage/offset_index.h"
#include "storage/producer_snapshot.h"
#include "storage/sealed_file.h"
#include "storage/storage_format.h"
#include "storage/time_index.h"

namespace {

using namespace mq;

/// What decodes is within its bounds, and comes back as it was.
void check_producers(base::Bytes body) {
  const auto snapshot = storage::decode_producer_snapshot(body);
  if (!snapshot) return;
  const auto& producers = snapshot->producers;
  MQ_CHECK(producers.size() <= storage::ProducerTable::kProducersMax);
  for (const auto& state : producers.states()) {
    MQ_CHECK(!state.empty() && state.batches().size() <= storage::ProducerState::kWindow);
    for (const auto& batch : state.batches()) {
      MQ_CHECK(batch.base_sequence >= 0 && batch.last_sequence() >= 0);
      MQ_CHECK(batch.end_offset() <= snapshot->end_offset);
    }
  }
  const auto again = storage::encode_producer_snapshot(snapshot->partition, snapshot->end_offset,
                                                       snapshot->segment_base, snapshot->position,
                                                       snapshot->last_batch, producers);
  MQ_CHECK(std::ranges::equal(again, body));
}

void check_body(base::Bytes body) {
  if (const auto checkpoint = storage::decode_checkpoint(body)) {
    const auto again = storage::decode_checkpoint(storage::encode_checkpoint(*checkpoint));
    MQ_CHECK(again && *again == *checkpoint);
  }
  (void)storage::decode_clean_marker(body).has_value();
  (void)storage::decode_run_marker(body).has_value();
  (void)storage::decode_identity(body).has_value();
  if (const auto index = storage::decode_segment_index(body)) {
    for (const auto& entry : index->offsets.entries())
      MQ_CHECK(entry.position < index->segment_bytes);
    (void)index->offsets.floor_position(index->end_offset);
  }
  if (const auto stored = storage::decode_time_index(body)) {
    for (const auto& entry : stored->times.entries()) {
      MQ_CHECK(entry.position < stored->segment_bytes);
      MQ_CHECK(stored->times.floor(entry.append_time_ms).position <= entry.position);
    }
    const auto again = storage::decode_time_index(
        storage::encode_time_index(stored->times, stored->segment_bytes));
    MQ_CHECK(again && again->times.entries() == stored->times.entries());
  }
  if (const auto disks = storage::decode_disk_list(body)) {
    const auto again = storage::decode_disk_list(storage::encode_disk_list(*disks));
    MQ_CHECK(again && *again == *disks);
  }
  if (const auto mark = storage::decode_scrub_mark(body)) {
    const auto again = storage::decode_scrub_mark(storage::encode_scrub_mark(*mark));
    MQ_CHECK(again && *again == *mark);
  }
  check_producers(body);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const base::Bytes bytes = fuzz::Input(data, size).rest();
  for (const auto magic : {storage::kIdentityMagic, storage::kIndexMagic})
    (void)storage::unseal(magic, bytes).has_value();
  check_body(bytes);
  const auto sealed = storage::seal(storage::kCheckpointMagic, bytes);
  const auto body = storage::unseal(storage::kCheckpointMagic, sealed);
  MQ_CHECK(body && std::equal(body->begin(), body->end(), bytes.begin(), bytes.end()));
  (void)storage::parse_segment_file_name(base::as_text(bytes)).has_value();
  (void)storage::parse_partition_directory_name(base::as_text(bytes)).has_value();
  return 0;
}
