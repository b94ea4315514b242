#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mq/record.h"
#include "mqctl/cli/context.h"
#include "mqctl/data/framing.h"
#include "mqctl/data/record_json.h"

namespace mq::mqctl {

/// How pieces of the input become records.
struct SourceOptions {
  Framing framing;
  std::optional<std::string> key_separator;  ///< what stands before it is the key
  std::optional<std::string> key_field;      ///< the key is the value of this field
  bool empty_is_tombstone = false;
  bool json = false;  ///< each piece is a line of `consume -J`
  std::vector<std::pair<std::string, std::string>> headers;  ///< added to every record
};

/// Points into the source until its next call.
struct SourceRecord {
  std::optional<Bytes> key;
  std::optional<Bytes> value;
  std::optional<Timestamp> timestamp;
  std::vector<HeaderView> headers;
  std::uint64_t bytes = 0;
};

/// The records of stdin or of several files, one after the other ("-" is stdin).
class RecordSource {
 public:
  enum class Got { record, refused, end, interrupted };

  /// Throws FILE_UNREADABLE when one of the files cannot be opened, before anything is read.
  RecordSource(Console& console, std::vector<std::string> files, SourceOptions options);
  /// refused: one record could not be made; refusal() says why, and reading goes on. Throws
  /// FILE_UNREADABLE when reading fails.
  Got next(SourceRecord& record);
  /// Counts from 1, over all files.
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
  [[nodiscard]] const Failure& refusal() const noexcept { return refusal_; }
  /// "record 17 of orders.txt", or "record 17" of stdin.
  [[nodiscard]] std::string name_of(std::uint64_t number) const;

 private:
  bool open_next();
  Got make_record(SourceRecord& record);
  Got refuse(protocol::WireError code, std::string why);
  Got make_json_record(SourceRecord& record);
  bool split_key(SourceRecord& record, std::string_view& value);

  Console& console_;
  std::vector<std::string> files_;
  SourceOptions options_;
  std::size_t next_file_ = 0;
  std::unique_ptr<Input> file_;
  std::optional<Framer> framer_;
  std::uint64_t number_ = 0;
  std::vector<std::uint64_t> first_numbers_;  // of each opened file
  std::optional<JsonRecord> json_;
  Failure refusal_;
};

}  // namespace mq::mqctl
