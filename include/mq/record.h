#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mq/config.h"
#include "mq/export.h"

namespace mq {
inline namespace v1 {

using Bytes = std::span<const std::byte>;

[[nodiscard]] inline Bytes as_bytes(std::string_view text) noexcept {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}
[[nodiscard]] inline std::string_view as_text(Bytes bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Immutable bytes that it owns or keeps alive. Copies share them.
class MQ_EXPORT Blob {
 public:
  Blob() = default;
  Blob(std::string text);              // NOLINT: implicit, so that key("42") reads well
  Blob(const char* text);              // NOLINT
  Blob(std::vector<std::byte> bytes);  // NOLINT
  static Blob copy_of(Bytes bytes);
  /// No copy: `bytes` stay valid as long as `keep_alive` lives.
  static Blob borrow(Bytes bytes, std::shared_ptr<const void> keep_alive);

  [[nodiscard]] Bytes bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::string_view text() const noexcept { return as_text(bytes_); }

 private:
  std::shared_ptr<const void> keep_;
  Bytes bytes_;
};

/// Names may repeat; a null value and an empty one are different.
struct Header {
  std::string name;
  std::optional<Blob> value;
};
struct HeaderView {
  std::string_view name;
  std::optional<Bytes> value;
};

struct TopicPartition {
  std::string topic;
  std::int32_t partition = 0;
  friend auto operator<=>(const TopicPartition&, const TopicPartition&) = default;
};

/// One record to be sent: Record("orders").key("42").value("paid"). Without key() the key is null;
/// without value() the value is null too (a tombstone). Null, empty and absent headers arrive as
/// they were given. The builders return by value, so that `record = std::move(record).header(…)` in
/// a loop works too.
class MQ_EXPORT Record {
 public:
  explicit Record(std::string topic) : topic_(std::move(topic)) {}

  Record key(Blob key) && {
    key_ = std::move(key);
    return std::move(*this);
  }
  Record value(Blob value) && {
    value_ = std::move(value);
    return std::move(*this);
  }
  Record tombstone() && {
    value_.reset();
    return std::move(*this);
  }
  Record header(std::string name, std::optional<Blob> value) && {
    headers_.push_back(Header{std::move(name), std::move(value)});
    return std::move(*this);
  }
  /// Default: by key; without a key, the partition changes from batch to batch.
  Record partition(std::int32_t partition) && {
    partition_ = partition;
    return std::move(*this);
  }
  /// Default: the time of send().
  Record timestamp(Timestamp timestamp) && {
    timestamp_ = timestamp;
    return std::move(*this);
  }

  [[nodiscard]] const std::string& topic() const noexcept { return topic_; }
  [[nodiscard]] const std::optional<Blob>& key() const noexcept { return key_; }
  [[nodiscard]] const std::optional<Blob>& value() const noexcept { return value_; }
  [[nodiscard]] const std::vector<Header>& headers() const noexcept { return headers_; }
  [[nodiscard]] std::optional<std::int32_t> partition() const noexcept { return partition_; }
  [[nodiscard]] std::optional<Timestamp> timestamp() const noexcept { return timestamp_; }

 private:
  std::string topic_;
  std::optional<Blob> key_;
  std::optional<Blob> value_;
  std::vector<Header> headers_;
  std::optional<std::int32_t> partition_;
  std::optional<Timestamp> timestamp_;
};

/// One record as read. Everything points into the Batch it came in and lives as long as that.
struct RecordView {
  std::string_view topic;
  std::int32_t partition = 0;
  std::int64_t offset = -1;
  Timestamp timestamp{};  ///< the producer's
  std::optional<Bytes> key;
  std::optional<Bytes> value;  ///< null: a tombstone
  std::span<const HeaderView> headers;

  /// A copy that outlives the Batch, with partition and timestamp set.
  [[nodiscard]] MQ_EXPORT Record to_owned() const;
};

}  // namespace v1
}  // namespace mq
