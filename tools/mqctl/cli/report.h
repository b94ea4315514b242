#pragma once

#include <string>
#include <vector>

#include "mqctl/cli/context.h"
#include "mqctl/cli/value.h"

namespace mq::mqctl {

/// The answer of a verb that ends by itself: items, errors and the text for people, printed in the
/// form asked for.
///
/// json is one object {"schema", <head>, "items", "errors"}; jsonl one object per item with the
/// schema in each. Text goes to stdout, failures in three lines each to stderr.
class Report {
 public:
  explicit Report(Context& context) : context_(context) {}

  /// A member beside "items", such as "cluster".
  void head(std::string key, Value value) { head_.set(std::move(key), std::move(value)); }
  void item(Value object) { items_.push_back(std::move(object)); }
  void failure(Failure failure) { failures_.push_back(std::move(failure)); }
  void text(std::string_view more) { text_ += more; }
  [[nodiscard]] bool has_failure(std::string_view code) const;

  /// Prints everything. The one exit code that all failures share, or 1 when some of several items
  /// failed or failed differently.
  Exit finish();

 private:
  void keep_fields_of_items();
  void print_json();
  void print_jsonl();
  void print_text();
  [[nodiscard]] Exit exit() const;

  Context& context_;
  Value head_ = Value::object();
  std::vector<Value> items_;
  std::vector<Failure> failures_;
  std::string text_;
};

}  // namespace mq::mqctl
