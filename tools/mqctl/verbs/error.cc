#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "mqctl/cli/report.h"
#include "mqctl/cli/table.h"
#include "mqctl/verbs/verbs.h"
#include "protocol/wire_error.h"

namespace mq::mqctl {
namespace {

constexpr std::string_view kShape =
    R"({"code":"string","number":"int","sentence":"string","advice":"string","retriable":"bool",)"
    R"("refresh_metadata":"bool","fatal":"bool","maybe_applied":"bool","exit":"int"})";

const std::vector<std::string>& names() {
  static const std::vector<std::string> all = {
#define MQ_ERROR(number, NAME, enumerator, flags, sentence, advice) #NAME,
#include "mq/errors.def"
  };
  return all;
}

Exit exit_of_change(const protocol::ErrorInfo& info) {
  if (info.code == protocol::WireError::ok) return Exit::ok;
  return exit_of(make_failure(info.code, ""), true);
}

Value item_of(const protocol::ErrorInfo& info) {
  Value item = Value::object();
  item.set("code", info.name)
      .set("number", static_cast<std::int32_t>(info.code))
      .set("sentence", info.sentence)
      .set("advice", info.advice)
      .set("retriable", info.flags.retriable)
      .set("refresh_metadata", info.flags.refresh_metadata)
      .set("fatal", info.flags.fatal)
      .set("maybe_applied", info.flags.maybe_applied)
      .set("exit", static_cast<std::int32_t>(exit_of_change(info)));
  return item;
}

Exit list(Context& context) {
  Report report(context);
  Table table(
      {{"NUMBER", Table::Align::right}, {"CODE"}, {"EXIT", Table::Align::right}, {"MEANS"}});
  for (const auto& name : names()) {
    const auto info = protocol::find_error(name).value();
    table.add({fmt::format("{}", static_cast<int>(info.code)), name,
               fmt::format("{}", static_cast<int>(exit_of_change(info))),
               std::string(info.sentence)});
    report.item(item_of(info));
  }
  report.text(table.text());
  return report.finish();
}

std::optional<protocol::ErrorInfo> find(std::string word) {
  if (const auto number = base::parse_unsigned(word); number && *number <= INT32_MAX)
    return protocol::find_error(static_cast<std::int32_t>(*number));
  std::transform(word.begin(), word.end(), word.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return protocol::find_error(word);
}

std::string text_of(const protocol::ErrorInfo& info) {
  std::string text =
      fmt::format("{} ({}): {}\n", info.name, static_cast<int>(info.code), info.sentence);
  if (!info.advice.empty()) text += fmt::format("  try:  {}\n", info.advice);
  const auto& flags = info.flags;
  if (flags.maybe_applied)
    text += "  The request was sent and its outcome is unknown: look before you repeat it.\n";
  else if (flags.retriable)
    text += "  Nothing was applied; the same call may succeed later.\n";
  if (flags.fatal) text += "  The client object that got it will not recover; create a new one.\n";
  text += fmt::format("  mqctl ends with exit code {} on it.\n",
                      static_cast<int>(exit_of_change(info)));
  return text;
}

Exit explain(Context& context) {
  Report report(context);
  for (const auto& word : context.args.positionals) {
    const auto info = find(word);
    if (!info) {
      const auto near = base::nearest(word, names());
      auto failure = make_failure(
          protocol::WireError::invalid_argument, fmt::format("there is no error \"{}\"", word),
          near ? fmt::format("did you mean {}?", *near) : "this release does not know it",
          "mqctl error list");
      failure.item = word;
      report.failure(std::move(failure));
      continue;
    }
    report.item(item_of(*info));
    report.text(text_of(*info));
  }
  return report.finish();
}

}  // namespace

Command error_list_command() {
  return {.path = "error list",
          .summary = "Lists every error code, its number and mqctl's exit code for it",
          .examples = {"mqctl error list"},
          .item_shape = std::string(kShape),
          .connects = false,
          .run = list};
}

Command error_explain_command() {
  return {.path = "error explain",
          .summary = "Explains an error code or number and what to do about it",
          .examples = {"mqctl error explain UNREACHABLE"},
          .positionals = {{.name = "CODE",
                           .help = "as in the brackets of an error line, or its number",
                           .most = SIZE_MAX,
                           .complete = Complete::error_codes}},
          .item_shape = std::string(kShape),
          .connects = false,
          .run = explain};
}

}  // namespace mq::mqctl
