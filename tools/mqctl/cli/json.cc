#include <nlohmann/json.hpp>

#include "mqctl/cli/value.h"

namespace mq::mqctl {
namespace {

using Json = nlohmann::ordered_json;

Json to_nlohmann(const Value& value);

struct ToNlohmann {
  Json operator()(std::monostate) const { return nullptr; }
  Json operator()(const Value::Array& array) const {
    Json json = Json::array();
    for (const auto& element : array) json.push_back(to_nlohmann(element));
    return json;
  }
  Json operator()(const Value::Object& object) const {
    Json json = Json::object();
    for (const auto& [key, member] : object) json[key] = to_nlohmann(member);
    return json;
  }
  template <class T>
  Json operator()(const T& plain) const {
    return plain;
  }
};

Json to_nlohmann(const Value& value) { return std::visit(ToNlohmann{}, value.data()); }

Value from_nlohmann(const Json& json) {
  switch (json.type()) {
    case Json::value_t::boolean:
      return json.get<bool>();
    case Json::value_t::number_integer:
      return json.get<std::int64_t>();
    case Json::value_t::number_unsigned:
      return json.get<std::uint64_t>();
    case Json::value_t::number_float:
      return json.get<double>();
    case Json::value_t::string:
      return json.get<std::string>();
    case Json::value_t::array: {
      Value array = Value::array();
      for (const auto& element : json) array.add(from_nlohmann(element));
      return array;
    }
    case Json::value_t::object: {
      Value object = Value::object();
      for (const auto& [key, member] : json.items()) object.set(key, from_nlohmann(member));
      return object;
    }
    default:
      return {};
  }
}

}  // namespace

std::string to_json(const Value& value) {
  return to_nlohmann(value).dump(-1, ' ', false, Json::error_handler_t::replace);
}

JsonParse parse_json(std::string_view text) {
  try {
    return {from_nlohmann(Json::parse(text)), {}};
  } catch (const Json::exception& failed) {
    std::string why = failed.what();
    const auto at = why.find("] ");
    return {std::nullopt, at == std::string::npos ? why : why.substr(at + 2)};
  }
}

}  // namespace mq::mqctl
