#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/buffer.h"
#include "model/error.h"
#include "model/ids.h"
#include "model/record_batch.h"

namespace mq::model {

/// The records of a batch, unpacked. With codec none they alias the batch's own bytes and the owner
/// is empty; otherwise they fill a buffer of exactly raw_bytes from `pool`.
/// Errors: too_large when raw_bytes is above `raw_bytes_max` (nothing is taken),
/// corrupt_records when they do not unpack to exactly raw_bytes.
Result<base::SharedBytes> decompress(const RecordBatchView& batch, base::BufferPool& pool,
                                     std::uint32_t raw_bytes_max = batch_format::kRawBytesMax);

/// One header of a record.
struct RecordHeaderView {
  std::string_view name;
  std::optional<Bytes> value;
};

/// The headers of one record, parsed while they are walked. The reader has checked them.
class RecordHeadersView {
 public:
  RecordHeadersView() = default;
  RecordHeadersView(const std::byte* from, const std::byte* end, std::size_t count) noexcept
      : from_(from), end_(end), count_(count) {}

  class Iterator {
   public:
    using value_type = RecordHeaderView;
    using difference_type = std::ptrdiff_t;

    Iterator() = default;
    Iterator(const std::byte* from, const std::byte* end, std::size_t left) noexcept
        : from_(from), end_(end), left_(left) {
      load();
    }
    const RecordHeaderView& operator*() const noexcept { return current_; }
    const RecordHeaderView* operator->() const noexcept { return &current_; }
    Iterator& operator++() noexcept {
      --left_;
      load();
      return *this;
    }
    void operator++(int) noexcept { ++*this; }
    friend bool operator==(const Iterator& a, const Iterator& b) noexcept {
      return a.left_ == b.left_;
    }

   private:
    void load() noexcept;

    const std::byte* from_ = nullptr;
    const std::byte* end_ = nullptr;
    std::size_t left_ = 0;
    RecordHeaderView current_;
  };

  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] Iterator begin() const noexcept { return {from_, end_, count_}; }
  [[nodiscard]] Iterator end() const noexcept { return {}; }

 private:
  const std::byte* from_ = nullptr;
  const std::byte* end_ = nullptr;
  std::size_t count_ = 0;
};

/// One record. Everything points into the records that the reader walks.
struct RecordView {
  Offset offset;
  std::int64_t timestamp_ms = 0;
  std::optional<Bytes> key;
  std::optional<Bytes> value;
  std::optional<Bytes> tag;
  RecordHeadersView headers;
};

enum class [[nodiscard]] RecordStep : std::uint8_t{record, end, corrupt};

/// Walks the records of one batch in offset order:
///
///   RecordReader reader(batch, records.bytes);
///   RecordView record;
///   while (reader.next(record) == RecordStep::record) ...
///   if (reader.corrupt()) ...
///
/// Every length is checked against what is left before it is used. Extensions of a newer writer are
/// skipped. Nothing is allocated.
class RecordReader {
 public:
  /// `records` is what decompress() gave for `batch`; both outlive the reader.
  RecordReader(const RecordBatchView& batch, Bytes records) noexcept;

  /// The next record into `record`. `end` comes after exactly record_count records and no byte left
  /// over; `corrupt` otherwise, and from then on always.
  RecordStep next(RecordView& record) noexcept;

  [[nodiscard]] bool corrupt() const noexcept { return corrupt_; }

 private:
  RecordStep finish() noexcept;
  RecordStep fail() noexcept;

  const std::byte* from_;
  const std::byte* end_;
  std::uint32_t records_left_;
  std::int64_t base_offset_;
  std::int64_t base_timestamp_ms_;
  std::uint64_t delta_min_ = 0;  // the lowest offset delta that the next record may have
  std::uint64_t delta_max_;
  bool corrupt_ = false;
};

}  // namespace mq::model
