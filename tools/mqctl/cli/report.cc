#include "mqctl/cli/report.h"

#include <fmt/format.h>

#include <algorithm>

namespace mq::mqctl {

void Report::keep_fields_of_items() {
  const auto& fields = context_.globals.fields;
  if (fields.empty()) return;
  for (auto& item : items_) {
    std::string unknown;
    if (!keep_fields(item, fields, unknown))
      throw Failed(
          usage_failure(fmt::format("--fields: there is no field \"{}\"", unknown), {},
                        fmt::format("mqctl {} --schema lists the fields", context_.command.path)));
  }
}

void Report::print_json() {
  Value object = Value::object();
  object.set("schema", context_.command.schema());
  for (const auto& [key, value] : *head_.get_if<Value::Object>()) object.set(key, value);
  object.set("items", Value(items_));
  Value errors = Value::array();
  for (const auto& failure : failures_)
    errors.add(failure_value(failure, context_.command.changes));
  object.set("errors", std::move(errors));
  context_.console.out.write(to_json(object) + "\n");
}

void Report::print_jsonl() {
  for (const auto& item : items_) {
    Value line = Value::object();
    line.set("schema", context_.command.schema());
    for (const auto& [key, value] : *head_.get_if<Value::Object>()) line.set(key, value);
    for (const auto& [key, value] : *item.get_if<Value::Object>()) line.set(key, value);
    context_.console.out.write(to_json(line) + "\n");
  }
  for (const auto& failure : failures_) context_.report(failure);
}

void Report::print_text() {
  context_.console.out.write(text_);
  context_.console.out.flush();
  for (const auto& failure : failures_) context_.report(failure);
}

bool Report::has_failure(std::string_view code) const {
  return std::any_of(failures_.begin(), failures_.end(),
                     [&](const Failure& failure) { return failure.code == code; });
}

Exit Report::exit() const {
  if (failures_.empty()) return Exit::ok;
  const Exit first = exit_of(failures_.front(), context_.command.changes);
  bool same = items_.empty();
  for (const auto& failure : failures_)
    same = same && exit_of(failure, context_.command.changes) == first;
  return same ? first : Exit::failed;
}

Exit Report::finish() {
  keep_fields_of_items();
  switch (context_.globals.form) {
    case Form::json:
      print_json();
      break;
    case Form::jsonl:
      print_jsonl();
      break;
    case Form::table:
      print_text();
      break;
  }
  return exit();
}

}  // namespace mq::mqctl
