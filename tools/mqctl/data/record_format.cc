#include "mqctl/data/record_format.h"

#include <fmt/format.h>

#include <algorithm>

#include "mqctl/cli/text.h"
#include "mqctl/data/record_json.h"

namespace mq::mqctl {

std::optional<RecordFormat::Form> RecordFormat::form_of(char token, std::string_view name) {
  if (token == 'T') {
    if (name == "ms") return Form::unix_ms;
    return std::nullopt;
  }
  if (name == "json" && (token == 'k' || token == 'v' || token == 'h')) return Form::json;
  if (token != 'k' && token != 'v') return std::nullopt;
  if (name == "hex") return Form::hex;
  if (name == "base64") return Form::base64;
  return std::nullopt;
}

RecordFormat::Parse RecordFormat::parse(std::string_view text) {
  RecordFormat format;
  std::string literal;
  const auto end_literal = [&] {
    if (literal.empty()) return true;
    auto plain = unescape(literal);
    literal.clear();
    if (!plain) return false;
    format.pieces_.push_back({0, Form::raw, std::move(*plain)});
    return true;
  };
  const auto failed = [](std::string why) { return Parse{std::nullopt, std::move(why)}; };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      literal += text[i];
      continue;
    }
    if (++i == text.size()) return failed("it ends with a single %; write %% for one");
    const char token = text[i];
    if (token == '%') {
      literal += '%';
      continue;
    }
    if (std::string_view("tpoTkvh").find(token) == std::string_view::npos)
      return failed(fmt::format("there is no token %{}; known: %t %p %o %T %k %v %h %%", token));
    if (!end_literal()) return failed("a backslash needs n, t, r, 0, \\ or xHH behind it");
    Piece piece{token, Form::raw, {}};
    if (i + 1 < text.size() && text[i + 1] == '{') {
      const auto close = text.find('}', i);
      const auto name = text.substr(i + 2, close == std::string_view::npos ? close : close - i - 2);
      const auto form = form_of(token, name);
      if (close == std::string_view::npos || !form)
        return failed(fmt::format("%{} has no form {{{}}}", token, name));
      piece.form = *form;
      i = close;
    }
    format.pieces_.push_back(std::move(piece));
  }
  if (!end_literal()) return failed("a backslash needs n, t, r, 0, \\ or xHH behind it");
  return {std::move(format), {}};
}

void RecordFormat::append_bytes(const std::optional<Bytes>& bytes, Form form, std::string& out) {
  if (form == Form::json) {
    out += to_json(bytes_value(bytes));
    return;
  }
  if (!bytes) return;
  const auto text = as_text(*bytes);
  if (form == Form::hex) {
    out += to_hex(text);
  } else if (form == Form::base64) {
    out += to_base64(text);
  } else {
    out += text;
  }
}

void RecordFormat::append_headers(std::span<const HeaderView> headers, Form form,
                                  std::string& out) {
  if (form == Form::json) {
    out += to_json(headers_value(headers));
    return;
  }
  bool first = true;
  for (const auto& header : headers) {
    if (!first) out += ',';
    first = false;
    out += header.name;
    out += '=';
    if (header.value) out += as_text(*header.value);
  }
}

void RecordFormat::append_token(const Piece& piece, const RecordView& record, std::string& out) {
  const auto unix_ms = record.timestamp.time_since_epoch().count();
  switch (piece.token) {
    case 't':
      out += record.topic;
      break;
    case 'p':
      out += fmt::format("{}", record.partition);
      break;
    case 'o':
      out += fmt::format("{}", record.offset);
      break;
    case 'T':
      out += piece.form == Form::unix_ms ? fmt::format("{}", unix_ms) : format_timestamp(unix_ms);
      break;
    case 'k':
      append_bytes(record.key, piece.form, out);
      break;
    case 'v':
      append_bytes(record.value, piece.form, out);
      break;
    case 'h':
      append_headers(record.headers, piece.form, out);
      break;
    default:
      break;
  }
}

bool RecordFormat::uses_only(std::string_view tokens) const {
  return std::all_of(pieces_.begin(), pieces_.end(), [&](const Piece& piece) {
    return piece.token == 0 || tokens.find(piece.token) != std::string_view::npos;
  });
}

void RecordFormat::append(const RecordView& record, std::string& out) const {
  for (const auto& piece : pieces_) {
    if (piece.token == 0)
      out += piece.text;
    else
      append_token(piece, record, out);
  }
}

}  // namespace mq::mqctl
