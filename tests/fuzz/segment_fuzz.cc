// A segment file of any bytes, through recovery's scanner and through a reader.
#include <memory>

#include "base/check.h"
#include "fuzz/fuzz_input.h"
#include "storage/batch_scanner.h"
#include "storage/segment_reader.h"

namespace {

using namespace mq;

/// A file in memory that is only read.
class MemoryFile final : public base::File {
 public:
  explicit MemoryFile(base::Bytes bytes) : bytes_(bytes) {}
  base::Result<std::size_t> read_at(base::MutableBytes into, std::uint64_t position) override {
    if (position >= bytes_.size()) return std::size_t{0};
    const auto n = std::min<std::size_t>(into.size(), bytes_.size() - position);
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(position), n, into.begin());
    return n;
  }
  base::Result<std::size_t> read_cached_at(base::MutableBytes into,
                                           std::uint64_t position) override {
    return read_at(into, position);
  }
  base::Result<std::size_t> write_at(std::span<const base::Bytes>, std::uint64_t) override {
    return make_error_code(base::BaseErrc::io_failed);
  }
  base::Result<void> sync_data() override { return {}; }
  base::Result<void> sync_all() override { return {}; }
  base::Result<void> sync_file_system() override { return {}; }
  base::Result<void> truncate(std::uint64_t) override { return {}; }
  base::Result<void> allocate(std::uint64_t, std::uint64_t) override { return {}; }
  void start_write_back(std::uint64_t, std::uint64_t) override {}
  void drop_cache(std::uint64_t, std::uint64_t) override {}
  base::Result<std::uint64_t> size() override { return std::uint64_t{bytes_.size()}; }

 private:
  base::Bytes bytes_;
};

void scan(base::Bytes bytes, storage::BatchScanner::Depth depth) {
  MemoryFile file(bytes);
  storage::BatchScanner::Start start;
  storage::BatchScanner scanner(file, start, bytes.size(), depth);
  std::uint64_t at = 0;
  while (true) {
    MQ_CHECK(scanner.next().has_value());
    if (scanner.at_end()) break;
    MQ_CHECK(scanner.position() == at);
    at += scanner.batch_bytes();
    if (scanner.state() != storage::BatchState::good) continue;
    MQ_CHECK(at <= bytes.size() && scanner.batch_bytes() > 0);
    MQ_CHECK(scanner.view().end_offset() > scanner.view().base_offset());
  }
}

void read(base::Bytes bytes, storage::SegmentRead::Source source, std::uint8_t from) {
  MemoryFile file(bytes);
  storage::SegmentRead wanted;
  wanted.source = source;
  wanted.from = model::Offset(from);
  wanted.limit = model::Offset(1'000);
  wanted.bytes_max = 200;
  wanted.end = bytes.size();
  model::DamagedPlace damage;
  const auto result = storage::read_segment(file, wanted, damage);
  if (result) {
    MQ_CHECK(result->read.end_offset >= wanted.from);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const base::Bytes bytes = fuzz::Input(data + 1, size - 1).rest();
  scan(bytes, storage::BatchScanner::Depth::whole);
  scan(bytes, storage::BatchScanner::Depth::headers);
  read(bytes, storage::SegmentRead::Source::page_cache, data[0]);
  read(bytes, storage::SegmentRead::Source::disk, data[0]);
  MemoryFile file(bytes);
  std::uint64_t damage = 0;
  for (const std::uint64_t near : {std::uint64_t{0}, std::uint64_t{data[0]}}) {
    // Wherever an index points to, the answer is that of a walk from the start.
    const storage::TimeIndex::Place place{model::Offset(data[0] % 4), near};
    const auto found =
        storage::find_batch_by_time(file, model::Offset(0), bytes.size(), place, data[0], damage);
    if (found && *found) {
      MQ_CHECK((*found)->append_time_ms >= data[0]);
    }
  }
  (void)storage::rebuild_segment_index(file, model::Offset(0), bytes.size(), 64).has_value();
  return 0;
}
