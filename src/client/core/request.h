#pragma once

#include <algorithm>
#include <utility>

#include "client/core/connection_pool.h"
#include "client/core/error.h"
#include "protocol/parts.h"

namespace mq::client {

/// Partitions that one Fetch or ListOffsets names at most; a broker takes 16,384.
inline constexpr std::size_t kEntriesAtOnce = 8192;

/// Client name and remaining time into a request's envelope.
inline void fill_envelope(protocol::RequestEnvelope& envelope, const ClientConfig& config,
                          base::TimePoint now, base::TimePoint deadline) {
  envelope.client_name = config.client_id;
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - now).count();
  envelope.deadline_ms =
      static_cast<std::uint32_t>(std::clamp<std::int64_t>(left, 1, 1'000'000'000));
}

inline std::string where(const net::ClientConnection& connection) {
  return broker_text(connection.hello().broker_id, connection.endpoint().text());
}

/// A response header's outcome: the envelope's status if that is an error, or what `decode` reads.
template <class Response>
Result<Response> read_response(const net::Frame& frame,
                               base::Result<Response> (*decode)(base::Bytes),
                               const std::string& where) {
  auto response = decode(frame.header);
  if (!response) {
    return make_error(Errc::protocol_violation, "an answer of the broker does not parse", where);
  }
  if (!response->envelope.status.ok()) return from_status(response->envelope.status, where);
  return std::move(*response);
}

/// One request and its decoded answer. Only answers that can be joined may have several frames.
template <class Response>
asio::awaitable<Result<Response>> exchange(ConnectionPtr connection, net::ClientRequest request,
                                           base::Result<Response> (*decode)(base::Bytes)) {
  const std::string place = where(*connection);
  const auto frames = co_await connection->call(std::move(request));
  if (!frames) co_return from_transport(frames.error(), place);
  auto whole = read_response(frames->front(), decode, place);
  for (std::size_t i = 1; i < frames->size() && whole; ++i) {
    auto part = read_response((*frames)[i], decode, place);
    if (!part) co_return part.error();
    if constexpr (requires { protocol::join(*whole, *std::move(part)); }) {
      protocol::join(*whole, *std::move(part));
    } else {
      co_return make_error(Errc::protocol_violation, "an answer came in several frames", place);
    }
  }
  co_return whole;
}

}  // namespace mq::client
