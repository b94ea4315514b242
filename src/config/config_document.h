#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/config_value.h"

namespace mq::config {

struct Place {
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  friend auto operator<=>(const Place&, const Place&) = default;
};

/// One "key = value" of a file.
struct DocumentEntry {
  std::string key;   ///< with its section: "storage.disk.path"
  int element = -1;  ///< which table of a [[list]] it is in; -1: none
  ConfigValue value;
  Place key_place;
  Place value_place;
};

/// One [section], [[section]] or inline table.
struct DocumentSection {
  std::string key;
  bool is_list = false;
  Place place;
};

struct DocumentError {
  Place place;
  std::string message;
};

/// A TOML file taken apart. A line that does not parse is reported and left out, and the rest is
/// read all the same, so that all mistakes come out at once.
struct Document {
  std::vector<DocumentEntry> entries;
  std::vector<DocumentSection> sections;
  std::vector<DocumentError> errors;
};
Document parse_document(std::string_view text);

}  // namespace mq::config
