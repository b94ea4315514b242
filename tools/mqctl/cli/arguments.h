#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mq::mqctl {

/// The values of one command line, by flag name, checked by the flag's kind already: a getter of
/// the right kind cannot fail. Asking for a flag that the command does not have is an own bug.
class Arguments {
 public:
  std::map<std::string, std::vector<std::string>, std::less<>> values;
  std::vector<std::string> positionals;

  /// Given, or with a default in the registry.
  [[nodiscard]] bool has(std::string_view name) const;
  [[nodiscard]] bool on(std::string_view name) const { return has(name); }
  [[nodiscard]] const std::string& text(std::string_view name) const;
  [[nodiscard]] std::optional<std::string> maybe_text(std::string_view name) const;
  [[nodiscard]] const std::vector<std::string>& list(std::string_view name) const;
  [[nodiscard]] std::int64_t number(std::string_view name) const;
  [[nodiscard]] double rate(std::string_view name) const;
  [[nodiscard]] std::uint64_t bytes(std::string_view name) const;
  [[nodiscard]] std::chrono::milliseconds duration(std::string_view name) const;
};

}  // namespace mq::mqctl
