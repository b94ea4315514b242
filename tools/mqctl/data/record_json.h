#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mq/record.h"
#include "mqctl/cli/value.h"

namespace mq::mqctl {

/// Bytes in JSON: null, a string when they are UTF-8, else {"base64": "…"}. So null, empty, text
/// and binary stay four different things.
Value bytes_value(const std::optional<Bytes>& bytes);
Value headers_value(std::span<const HeaderView> headers);

/// The line of `consume -J`: topic, partition, offset, ts, key, value, headers.
Value record_value(const RecordView& record);

/// What `produce -J` takes from such a line.
struct JsonRecord {
  struct Header {
    std::string name;
    std::optional<std::string> value;
  };
  std::optional<std::string> key;
  std::optional<std::string> value;
  std::vector<Header> headers;
  std::optional<std::int64_t> unix_ms;
};
struct JsonRecordParse {
  std::optional<JsonRecord> record;
  std::string error;
};
/// topic, partition, offset and schema are not used, so that consumed lines can be sent elsewhere;
/// any other unknown member is refused.
JsonRecordParse parse_record_json(std::string_view line);

}  // namespace mq::mqctl
