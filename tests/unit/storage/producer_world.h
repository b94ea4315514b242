#pragma once

#include <optional>

#include "storage/producer_table.h"
#include "storage_world.h"

namespace mq::testing {

/// A batch of a producer that names itself, as a client sends it.
inline base::SharedBytes named_batch(std::int64_t id, std::int32_t epoch, std::int32_t sequence,
                                     int records, std::size_t value_bytes = 40) {
  model::RecordBatchBuilder builder(base::BufferPool::shared(), 16u << 20, 4096);
  const std::vector<std::byte> value(value_bytes, static_cast<std::byte>(id));
  for (int i = 0; i < records; ++i) {
    model::RecordInput input;
    input.value = base::Bytes(value);
    input.timestamp_ms = sequence + i;
    EXPECT_TRUE(builder.append(input));
  }
  builder.set_producer({id, epoch}, sequence);
  return builder.finish();
}

/// What is remembered of one producer, in a form that can be compared and printed.
struct Remembered {
  std::int32_t epoch = -1;
  std::vector<storage::ProducerBatch> batches;
  friend bool operator==(const Remembered&, const Remembered&) = default;
};
inline std::optional<Remembered> remembered(const storage::ProducerState* state) {
  if (state == nullptr) return std::nullopt;
  return Remembered{state->producer().epoch, {state->batches().begin(), state->batches().end()}};
}

/// IDM-4: what the log's own batches say, from its start to its end.
inline storage::ProducerTable table_of(const std::vector<std::byte>& log) {
  storage::ProducerTable table;
  for (base::Bytes rest = log; !rest.empty();) {
    const auto batch = model::RecordBatchView::parse_first(rest);
    EXPECT_TRUE(batch);
    if (!batch) break;
    table.note(*batch);
    rest = rest.subspan(batch->batch_bytes());
  }
  return table;
}

/// From the batch that the log start lies in to the log end.
inline std::vector<std::byte> whole_batches(StorageWorld& world) {
  std::vector<std::byte> all;
  auto at = world.log().log_start_offset();
  while (at < world.log().log_end_offset()) {
    const auto result = world.read(at);
    EXPECT_TRUE(result) << result.error().message();
    if (!result || result->end_offset <= at) break;
    for (const auto& piece : result->batches)
      all.insert(all.end(), piece.bytes.begin(), piece.bytes.end());
    at = result->end_offset;
  }
  return all;
}

/// Producers 0 to `producers` are remembered as the log says.
inline void expect_remembered_as_in_the_log(StorageWorld& world, std::int64_t producers,
                                            const std::string& when) {
  auto expected = table_of(whole_batches(world));
  for (std::int64_t id = 0; id < producers; ++id) {
    ASSERT_EQ(remembered(world.log().find_producer(id)), remembered(expected.find(id)))
        << when << ", producer " << id;
  }
}

inline std::vector<std::string> producers_files(StorageWorld& world) {
  std::vector<std::string> names;
  const auto entries = world.files->list_directory(world.directory());
  for (const auto& entry : *entries) {
    if (entry.name.ends_with(".producers")) names.push_back(world.directory() + "/" + entry.name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace mq::testing
