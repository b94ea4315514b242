#include "mqctl/cli/arguments.h"

#include <cstdlib>

#include "base/check.h"
#include "base/strings.h"
#include "base/units.h"

namespace mq::mqctl {

bool Arguments::has(std::string_view name) const {
  const auto at = values.find(name);
  return at != values.end() && !at->second.empty();
}

const std::string& Arguments::text(std::string_view name) const {
  const auto at = values.find(name);
  MQ_CHECK(at != values.end() && !at->second.empty(), "flag {} has no value", name);
  return at->second.back();
}

std::optional<std::string> Arguments::maybe_text(std::string_view name) const {
  if (!has(name)) return std::nullopt;
  return text(name);
}

const std::vector<std::string>& Arguments::list(std::string_view name) const {
  static const std::vector<std::string> nothing;
  const auto at = values.find(name);
  return at == values.end() ? nothing : at->second;
}

std::int64_t Arguments::number(std::string_view name) const {
  return base::parse_signed(text(name)).value();
}

double Arguments::rate(std::string_view name) const {
  return std::strtod(text(name).c_str(), nullptr);
}

std::uint64_t Arguments::bytes(std::string_view name) const {
  return base::parse_bytes(text(name)).value();
}

std::chrono::milliseconds Arguments::duration(std::string_view name) const {
  return base::parse_duration(text(name)).value();
}

}  // namespace mq::mqctl
