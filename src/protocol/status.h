#pragma once

#include <cstdint>
#include <string>

#include "protocol/wire_error.h"

namespace mq::protocol {

/// Field 1 of every response header, in every version: an error can be read without knowing the
/// API. `code` may be a number that this release does not know; the flags tell what to do then.
struct Status {
  std::int32_t code = 0;
  ErrorAdvice advice;
  std::string text;          ///< what exactly was refused: topic, partition, sizes; empty when ok
  std::int32_t broker = -1;  ///< id of the broker that made it

  [[nodiscard]] bool ok() const noexcept { return code == 0; }
  [[nodiscard]] WireError error() const noexcept { return static_cast<WireError>(code); }
  /// With the flags of the error table.
  static Status of(WireError error, std::string text, std::int32_t broker = -1);
  friend bool operator==(const Status&, const Status&) = default;
};

/// Fields 1-15 of every request header.
struct RequestEnvelope {
  std::uint32_t deadline_ms =
      0;                     ///< how long the caller waits, from sending; 0: the broker's own limit
  std::string trace_parent;  ///< W3C trace context, at most 64 bytes
  std::string client_name;   ///< for logs, at most 128 bytes
  friend bool operator==(const RequestEnvelope&, const RequestEnvelope&) = default;
};

/// Fields 1-15 of every response header.
struct ResponseEnvelope {
  Status status;
  std::uint32_t throttle_ms = 0;
  std::uint64_t metadata_version =
      0;  ///< version of the cluster image the broker has; a newer one is a hint to refresh
  friend bool operator==(const ResponseEnvelope&, const ResponseEnvelope&) = default;
};

}  // namespace mq::protocol
