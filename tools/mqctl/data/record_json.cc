#include "mqctl/data/record_json.h"

#include <fmt/format.h>

#include "mqctl/cli/text.h"

namespace mq::mqctl {
namespace {

/// False when `value` is none of null, string, {"base64": string}.
bool read_bytes(const Value& value, std::optional<std::string>& into) {
  if (value.is_null()) {
    into.reset();
    return true;
  }
  if (const auto* text = value.get_if<std::string>()) {
    into = *text;
    return true;
  }
  const Value* encoded = value.find("base64");
  if (encoded == nullptr || value.get_if<Value::Object>()->size() != 1) return false;
  const auto* text = encoded->get_if<std::string>();
  into = text == nullptr ? std::nullopt : from_base64(*text);
  return into.has_value();
}

/// Empty when all is well.
std::string read_header(const Value& value, std::vector<JsonRecord::Header>& into) {
  const Value* name = value.find("name");
  const Value* content = value.find("value");
  JsonRecord::Header header;
  const auto* text = name == nullptr ? nullptr : name->get_if<std::string>();
  if (text == nullptr) return "a header needs a name";
  header.name = *text;
  if (content != nullptr && !read_bytes(*content, header.value))
    return "a header's value must be null, a string or {\"base64\": \"…\"}";
  into.push_back(std::move(header));
  return "";
}

std::string read_headers(const Value& value, std::vector<JsonRecord::Header>& into) {
  const auto* array = value.get_if<Value::Array>();
  if (array == nullptr) return "headers must be an array of {\"name\", \"value\"}";
  for (const auto& element : *array)
    if (auto wrong = read_header(element, into); !wrong.empty()) return wrong;
  return "";
}

std::string read_time(const Value& value, std::optional<std::int64_t>& into) {
  const auto* text = value.get_if<std::string>();
  into = text == nullptr ? std::nullopt : parse_timestamp(*text);
  return into ? "" : "ts must be a time like 2026-11-29T14:20:07.113Z";
}

std::string read_member(const std::string& name, const Value& value, JsonRecord& into) {
  if (name == "key" || name == "value") {
    return read_bytes(value, name == "key" ? into.key : into.value)
               ? ""
               : fmt::format("{} must be null, a string or {{\"base64\": \"…\"}}", name);
  }
  if (name == "headers") return read_headers(value, into.headers);
  if (name == "ts") return read_time(value, into.unix_ms);
  if (name == "topic" || name == "partition" || name == "offset" || name == "schema") return "";
  return fmt::format("unknown member \"{}\"", name);
}

}  // namespace

Value bytes_value(const std::optional<Bytes>& bytes) {
  if (!bytes) return {};
  const auto text = as_text(*bytes);
  if (is_utf8(text)) return text;
  return Value::object().set("base64", to_base64(text));
}

Value headers_value(std::span<const HeaderView> headers) {
  Value array = Value::array();
  for (const auto& header : headers)
    array.add(Value::object().set("name", header.name).set("value", bytes_value(header.value)));
  return array;
}

Value record_value(const RecordView& record) {
  return Value::object()
      .set("topic", record.topic)
      .set("partition", record.partition)
      .set("offset", record.offset)
      .set("ts", format_timestamp(record.timestamp.time_since_epoch().count()))
      .set("key", bytes_value(record.key))
      .set("value", bytes_value(record.value))
      .set("headers", headers_value(record.headers));
}

JsonRecordParse parse_record_json(std::string_view line) {
  const auto parsed = parse_json(line);
  if (!parsed.value) return {std::nullopt, parsed.error};
  const auto* object = parsed.value->get_if<Value::Object>();
  if (object == nullptr) return {std::nullopt, "not a JSON object"};
  JsonRecord record;
  for (const auto& [name, value] : *object)
    if (auto wrong = read_member(name, value, record); !wrong.empty()) return {std::nullopt, wrong};
  return {std::move(record), {}};
}

}  // namespace mq::mqctl
