#include "config/config_document.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <optional>

namespace mq::config {
namespace {

constexpr std::size_t kErrorsMax = 20;

Place place_of(const toml::source_region& region) {
  return {static_cast<std::uint32_t>(region.begin.line),
          static_cast<std::uint32_t>(region.begin.column)};
}

ConfigValue value_of(const toml::node& node) {
  if (const auto* text = node.as_string()) return {ConfigValue::Type::string, text->get()};
  if (const auto* number = node.as_integer())
    return {ConfigValue::Type::integer, std::to_string(number->get())};
  if (const auto* number = node.as_floating_point())
    return {ConfigValue::Type::other, fmt::format("{}", number->get())};
  if (const auto* flag = node.as_boolean())
    return {ConfigValue::Type::boolean, flag->get() ? "true" : "false"};
  if (node.is_array()) return {ConfigValue::Type::other, "a list"};
  return {ConfigValue::Type::other, "a date or time"};
}

bool is_list_of_tables(const toml::node& node) {
  const auto* list = node.as_array();
  return list && !list->empty() && list->is_homogeneous(toml::node_type::table);
}

/// Walks the tables and writes down what is in them.
class Flattener {
 public:
  explicit Flattener(Document& into) : into_(into) {}

  void walk(const toml::table& table, const std::string& prefix, int element) {
    for (const auto& [key, node] : table) {
      const std::string path =
          prefix.empty() ? std::string(key.str()) : prefix + "." + std::string(key.str());
      if (const auto* below = node.as_table()) {
        into_.sections.push_back({path, false, place_of(key.source())});
        walk(*below, path, element);
      } else if (is_list_of_tables(node)) {
        into_.sections.push_back({path, true, place_of(key.source())});
        walk_list(*node.as_array(), path);
      } else {
        into_.entries.push_back(
            {path, element, value_of(node), place_of(key.source()), place_of(node.source())});
      }
    }
  }

 private:
  void walk_list(const toml::array& list, const std::string& path) {
    int element = 0;
    for (const auto& one : list) walk(*one.as_table(), path, element++);
  }

  Document& into_;
};

/// "cannot redefine existing integer 'id'" and its like.
std::string message_of(const toml::parse_error& error) {
  std::string text(error.description());
  const auto redefined = text.find("redefine");
  if (redefined != std::string::npos) {
    const auto open = text.find('\'', redefined);
    const auto close = text.find('\'', open + 1);
    if (open != std::string::npos && close != std::string::npos)
      return fmt::format("\"{}\" is set twice", text.substr(open + 1, close - open - 1));
  }
  return text;
}

/// `text` with line `line` (from 1) blanked out, all others in their places.
std::string without_line(std::string text, std::uint32_t line) {
  std::size_t begin = 0;
  for (std::uint32_t i = 1; i < line && begin != std::string::npos; ++i) {
    begin = text.find('\n', begin);
    if (begin != std::string::npos) ++begin;
  }
  if (begin == std::string::npos) return text;
  const auto end = std::min(text.find('\n', begin), text.size());
  for (auto at = begin; at < end; ++at) text[at] = ' ';
  return text;
}

std::optional<toml::table> parse(const std::string& text, std::vector<DocumentError>& errors) {
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    errors.push_back({place_of(error.source()), message_of(error)});
    return std::nullopt;
  }
}

}  // namespace

Document parse_document(std::string_view bytes) {
  Document document;
  std::string text(bytes);
  auto table = parse(text, document.errors);
  while (!table && document.errors.size() < kErrorsMax) {
    const auto line = document.errors.back().place.line;
    // An error that does not move on comes from something open (a string, a bracket): stop
    // guessing.
    const bool moves_on =
        document.errors.size() < 2 || line > document.errors[document.errors.size() - 2].place.line;
    if (!moves_on) {
      document.errors.pop_back();
      break;
    }
    text = without_line(std::move(text), line);
    table = parse(text, document.errors);
  }
  if (table) Flattener(document).walk(*table, "", -1);
  return document;
}

}  // namespace mq::config
