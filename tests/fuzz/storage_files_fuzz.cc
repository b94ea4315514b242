// The small files of a data directory: as they come, and with size and checksum made right.
#include "base/check.h"
#include "base/crc32c.h"
#include "fuzz/fuzz_input.h"
#include "storage/disk_files.h"
#include "storage/offset_index.h"
#include "storage/sealed_file.h"
#include "storage/storage_format.h"

namespace {

using namespace mq;

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
