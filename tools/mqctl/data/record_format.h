#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mq/record.h"

namespace mq::mqctl {

/// What `consume -f` says: text with tokens %t %p %o %T %k %v %h %%, of which some take a form in
/// braces, and the escapes of unescape(). Compiled once, applied to each record.
class RecordFormat {
 public:
  struct Parse;
  static Parse parse(std::string_view text);
  /// Appends one record. Null keys and values are empty but for the form {json}.
  void append(const RecordView& record, std::string& out) const;
  /// Whether every token is one of these letters.
  [[nodiscard]] bool uses_only(std::string_view tokens) const;

 private:
  enum class Form { raw, hex, base64, json, unix_ms };
  struct Piece {
    char token = 0;  // 0: literal text
    Form form = Form::raw;
    std::string text;
  };
  static std::optional<Form> form_of(char token, std::string_view name);
  static void append_bytes(const std::optional<Bytes>& bytes, Form form, std::string& out);
  static void append_headers(std::span<const HeaderView> headers, Form form, std::string& out);
  static void append_token(const Piece& piece, const RecordView& record, std::string& out);

  std::vector<Piece> pieces_;
};

struct RecordFormat::Parse {
  std::optional<RecordFormat> format;
  std::string error;
};

}  // namespace mq::mqctl
