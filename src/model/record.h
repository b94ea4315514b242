#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/bytes.h"

namespace mq::model {

/// One application header, as given to a builder. A null value and an empty one are different.
struct RecordHeader {
  std::string_view name;
  std::optional<base::Bytes> value;
};

/// One record, as given to a builder. Null and empty are different in key, value (null: tombstone)
/// and tag. Borrowed: copied by append().
struct RecordInput {
  std::optional<base::Bytes> key;
  std::optional<base::Bytes> value;
  std::int64_t timestamp_ms = 0;
  std::optional<base::Bytes> tag;
  std::span<const RecordHeader> headers;
};

/// The Bloom bits of one tag: two of 64, from XXH3-64. A batch's tag_set is the union over its
/// records.
[[nodiscard]] std::uint64_t tag_bits(base::Bytes tag) noexcept;

}  // namespace mq::model
