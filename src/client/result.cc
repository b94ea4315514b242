#include "mq/result.h"

#include <fmt/format.h>

#include "base/log.h"
#include "protocol/wire_error.h"

namespace mq {
inline namespace v1 {
namespace {

constexpr std::size_t kTextBytesMax = 4096;

class PublicCategory final : public std::error_category {
 public:
  const char* name() const noexcept override { return "mq"; }
  std::string message(int value) const override {
    const auto code = static_cast<Errc>(value);
    const auto sentence = errc_sentence(code);
    return sentence.empty() ? errc_name(code) : std::string(sentence);
  }
};

}  // namespace

std::string errc_name(Errc code) {
  const auto info = protocol::find_error(static_cast<std::int32_t>(code));
  return info ? std::string(info->name) : fmt::format("ERROR_{}", static_cast<std::int32_t>(code));
}

std::string_view errc_sentence(Errc code) noexcept {
  const auto info = protocol::find_error(static_cast<std::int32_t>(code));
  return info ? info->sentence : std::string_view();
}

std::string to_string(const Error& error) {
  std::string text =
      fmt::format("{} [{}]", base::printable(error.message, kTextBytesMax), errc_name(error.code));
  if (!error.where.empty()) text += " at " + error.where;
  return text;
}

const std::error_category& error_category() noexcept {
  static const PublicCategory category;
  return category;
}

Exception::Exception(Error error)
    : std::system_error(static_cast<int>(error.code), error_category(), to_string(error)),
      error_(std::move(error)) {}
Exception::~Exception() = default;

namespace detail {
void throw_error(Error error) { throw Exception(std::move(error)); }
}  // namespace detail

}  // namespace v1
}  // namespace mq
