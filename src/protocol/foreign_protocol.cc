#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "protocol/frame.h"

namespace mq::protocol {
namespace {

enum class Match { no, more_bytes_needed, yes };

Match match_prefix(std::string_view bytes, std::string_view prefix) noexcept {
  const std::size_t common = std::min(bytes.size(), prefix.size());
  if (bytes.substr(0, common) != prefix.substr(0, common)) return Match::no;
  return common == prefix.size() ? Match::yes : Match::more_bytes_needed;
}

/// A request line, or the status line of a server that a client reached by mistake.
Match match_http(std::string_view bytes) noexcept {
  constexpr std::array<std::string_view, 11> kStarts{"GET ",    "HEAD ",    "POST ",    "PUT ",
                                                     "DELETE ", "CONNECT ", "OPTIONS ", "TRACE ",
                                                     "PATCH ",  "PRI *",    "HTTP/"};
  Match best = Match::no;
  for (const auto start : kStarts) best = std::max(best, match_prefix(bytes, start));
  return best;
}

/// A TLS record: handshake (22) or alert (21), major version 3, minor 0 to 4.
Match match_tls(std::string_view bytes) noexcept {
  if (bytes[0] != 22 && bytes[0] != 21) return Match::no;
  if (bytes.size() < 3) return Match::more_bytes_needed;
  const auto minor = static_cast<std::uint8_t>(bytes[2]);
  return bytes[1] == 3 && minor <= 4 ? Match::yes : Match::no;
}

/// A Kafka request: big-endian i32 size, i16 api key, i16 api version. Its size is far below 2^24
/// in the first request of a connection, so the first byte is 0.
Match match_kafka(std::string_view bytes) noexcept {
  if (bytes[0] != 0) return Match::no;
  if (bytes.size() < 8) return Match::more_bytes_needed;
  const auto at = [bytes](std::size_t i) { return static_cast<std::uint8_t>(bytes[i]); };
  const std::uint32_t size = std::uint32_t{at(1)} << 16 | std::uint32_t{at(2)} << 8 | at(3);
  constexpr std::uint32_t kSizeMin = 8;
  const bool key = at(4) == 0 && at(5) <= 127;
  const bool version = at(6) == 0 && at(7) <= 31;
  return size >= kSizeMin && key && version ? Match::yes : Match::no;
}

}  // namespace

ForeignProtocol recognise(base::Bytes first_bytes) noexcept {
  if (first_bytes.empty()) return ForeignProtocol::none_yet;
  const std::string_view bytes = base::as_text(first_bytes);
  const std::array<std::pair<ForeignProtocol, Match>, 4> matches{
      {{ForeignProtocol::mq, match_prefix(bytes, kPreface)},
       {ForeignProtocol::tls, match_tls(bytes)},
       {ForeignProtocol::http, match_http(bytes)},
       {ForeignProtocol::kafka, match_kafka(bytes)}}};
  auto answer = ForeignProtocol::unknown;
  for (const auto& [protocol, match] : matches) {
    if (match == Match::yes) return protocol;
    if (match == Match::more_bytes_needed) answer = ForeignProtocol::none_yet;
  }
  return answer;
}

std::string_view foreign_protocol_name(ForeignProtocol protocol) noexcept {
  switch (protocol) {
    case ForeignProtocol::none_yet:
      return "too few bytes to tell";
    case ForeignProtocol::mq:
      return "mq";
    case ForeignProtocol::tls:
      return "TLS";
    case ForeignProtocol::http:
      return "HTTP";
    case ForeignProtocol::kafka:
      return "Kafka";
    case ForeignProtocol::unknown:
      break;
  }
  return "an unknown protocol";
}

std::string foreign_protocol_answer(ForeignProtocol protocol) {
  if (protocol == ForeignProtocol::tls) {
    // Alert record, TLS 1.0 framing, two bytes: fatal, handshake_failure.
    return std::string("\x15\x03\x01\x00\x02\x02\x28", 7);
  }
  if (protocol == ForeignProtocol::http) {
    constexpr std::string_view kBody =
        "This is the client port of an mq broker. It speaks mq's own protocol, not HTTP.\n";
    return fmt::format(
        "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n"
        "Connection: close\r\n\r\n{}",
        kBody.size(), kBody);
  }
  return {};
}

}  // namespace mq::protocol
