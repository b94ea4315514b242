#include "mqctl/cli/value.h"

#include <algorithm>
#include <map>

namespace mq::mqctl {
namespace {

/// "a", "b.c", "b.d" as {a: [], b: [c, d]}, in the order of the first mention.
using Wanted = std::vector<std::pair<std::string, std::vector<std::string>>>;

Wanted by_first_name(const std::vector<std::string>& paths) {
  Wanted wanted;
  for (const auto& path : paths) {
    const auto dot = path.find('.');
    const auto name = path.substr(0, dot);
    auto at = std::find_if(wanted.begin(), wanted.end(),
                           [&](const auto& entry) { return entry.first == name; });
    if (at == wanted.end()) at = wanted.insert(wanted.end(), {name, {}});
    if (dot != std::string::npos) at->second.push_back(path.substr(dot + 1));
  }
  return wanted;
}

bool keep_in_array(Value& value, const std::vector<std::string>& paths, std::string& unknown) {
  Value kept = Value::array();
  for (Value element : *value.get_if<Value::Array>()) {
    if (!keep_fields(element, paths, unknown)) return false;
    kept.add(std::move(element));
  }
  value = std::move(kept);
  return true;
}

}  // namespace

Value& Value::set(std::string key, Value value) {
  std::get<Object>(data_).emplace_back(std::move(key), std::move(value));
  return *this;
}

Value& Value::add(Value value) {
  std::get<Array>(data_).push_back(std::move(value));
  return *this;
}

const Value* Value::find(std::string_view key) const {
  const auto* object = get_if<Object>();
  if (object == nullptr) return nullptr;
  const auto at =
      std::find_if(object->begin(), object->end(), [&](const Member& m) { return m.first == key; });
  return at == object->end() ? nullptr : &at->second;
}

bool keep_fields(Value& object, const std::vector<std::string>& paths, std::string& unknown) {
  if (object.get_if<Value::Array>() != nullptr) return keep_in_array(object, paths, unknown);
  Value kept = Value::object();
  for (const auto& [name, below] : by_first_name(paths)) {
    const Value* found = object.find(name);
    if (found == nullptr) {
      unknown = name;
      return false;
    }
    Value copy = *found;
    if (!below.empty() && !keep_fields(copy, below, unknown)) {
      unknown.insert(0, name + ".");
      return false;
    }
    kept.set(name, std::move(copy));
  }
  object = std::move(kept);
  return true;
}

}  // namespace mq::mqctl
