#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/asio.h"
#include "base/result.h"
#include "base/runtime.h"

namespace mq::base {

/// A host (name, IPv4 or IPv6 literal without brackets) and a port. Printed as it is parsed:
/// `host:port`, `[v6]:port`.
struct Endpoint {
  std::string host;
  std::uint16_t port = 0;

  [[nodiscard]] std::string text() const;
  friend auto operator<=>(const Endpoint&, const Endpoint&) = default;
};

/// "host:port", "host", "[v6]:port", "[v6]", or a bare IPv6 literal ("::1"); blanks around it are
/// dropped. Without a port `default_port` is taken. On bad input the error text names the part that
/// is wrong.
struct EndpointParse {
  std::optional<Endpoint> endpoint;
  std::string error;
};
EndpointParse parse_endpoint(std::string_view text, std::uint16_t default_port);

/// One connected, ordered byte stream. One reader and one writer at a time; all calls on the
/// owner's runtime.
class Stream {
 public:
  virtual ~Stream() = default;
  /// Reads at least one byte into the buffers, in order. end_of_stream when the peer closed in
  /// order.
  virtual asio::awaitable<Result<std::size_t>> read_some(
      std::span<const asio::mutable_buffer> into) = 0;
  /// Writes all bytes with as few system calls as possible; the buffers stay valid until it
  /// returns.
  virtual asio::awaitable<Result<void>> write_all(std::span<const asio::const_buffer> from) = 0;
  /// Ends both directions; calls in progress return `closed`. May be called again.
  virtual void close() = 0;
  /// The other end, for log lines: "127.0.0.1:40312".
  [[nodiscard]] virtual const std::string& peer() const = 0;
};

/// A listening socket.
class Acceptor {
 public:
  virtual ~Acceptor() = default;
  virtual asio::awaitable<Result<std::unique_ptr<Stream>>> accept() = 0;
  virtual void close() = 0;
  /// The bound address; tells the port that was given for port 0.
  [[nodiscard]] virtual Endpoint local() const = 0;
};

/// Connects and listens for one runtime.
class Network {
 public:
  virtual ~Network() = default;
  /// Tries every address the host has until one answers or `deadline` comes. timed_out, not_found;
  /// connection_refused only if every address said so.
  virtual asio::awaitable<Result<std::unique_ptr<Stream>>> connect(Endpoint to,
                                                                   TimePoint deadline) = 0;
  /// Ends every connect() in progress early, so that their caller can stop.
  virtual void cancel_connects() {}
  /// address_in_use, not_permitted, not_found.
  virtual Result<std::unique_ptr<Acceptor>> listen(const Endpoint& at) = 0;
};

}  // namespace mq::base
