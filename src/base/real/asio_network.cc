#include "base/real/asio_network.h"

#include <algorithm>
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/write.hpp>
#include <tuple>

namespace mq::base {
namespace {

using tcp = asio::ip::tcp;
constexpr auto kAsTuple = asio::as_tuple(asio::use_awaitable);

Error map_error(const boost::system::error_code& error) {
  using boost::system::error_code;
  if (error == asio::error::make_error_code(asio::error::eof)) return BaseErrc::end_of_stream;
  if (error == asio::error::make_error_code(asio::error::operation_aborted) ||
      error == asio::error::make_error_code(asio::error::bad_descriptor)) {
    return BaseErrc::closed;
  }
  if (error == asio::error::make_error_code(asio::error::host_not_found) ||
      error == asio::error::make_error_code(asio::error::host_not_found_try_again) ||
      error == asio::error::make_error_code(asio::error::service_not_found) ||
      error == asio::error::make_error_code(asio::error::no_data)) {
    return BaseErrc::not_found;
  }
  return error_from_errno(error.value());
}

std::string text_of(const tcp::endpoint& endpoint) {
  return Endpoint{endpoint.address().to_string(), endpoint.port()}.text();
}

/// The kernel copies a write of 2 MiB for most of a millisecond, in which the thread serves nobody
/// else. A large one therefore goes in pieces with a turn of the event loop between them.
constexpr std::size_t kTurnBytes = std::size_t{256} << 10;

/// For asio::async_write: how much to write next.
std::size_t one_turn(const boost::system::error_code& error, std::size_t /*written*/) {
  return error ? 0 : kTurnBytes;
}

class AsioStream final : public Stream {
 public:
  explicit AsioStream(tcp::socket socket) : socket_(std::move(socket)) {
    boost::system::error_code ignored;
    socket_.set_option(tcp::no_delay(true), ignored);
    socket_.non_blocking(true, ignored);  // for write_some(); the other calls do not care
    const auto remote = socket_.remote_endpoint(ignored);
    if (!ignored) peer_ = text_of(remote);
  }
  /// Goes on with one of another runtime.
  AsioStream(tcp::socket socket, std::string peer)
      : socket_(std::move(socket)), peer_(std::move(peer)) {}

  asio::awaitable<Result<std::size_t>> read_some(
      std::span<const asio::mutable_buffer> into) override {
    auto [error, bytes] = co_await socket_.async_read_some(into, kAsTuple);
    if (error) co_return map_error(error);
    co_return bytes;
  }

  asio::awaitable<Result<void>> write_all(std::span<const asio::const_buffer> from) override {
    if (asio::buffer_size(from) > kTurnBytes) co_return co_await write_rest(from, 0);
    // What the kernel takes at once costs no turn of the event loop, which looks at all sockets.
    boost::system::error_code error;
    const std::size_t written = socket_.write_some(from, error);
    if (error && error != asio::error::would_block) co_return map_error(error);
    if (written == asio::buffer_size(from)) co_return Result<void>{};
    co_return co_await write_rest(from, written);
  }

  void close() override {
    boost::system::error_code ignored;
    socket_.shutdown(tcp::socket::shutdown_both, ignored);
    socket_.close(ignored);
  }

  const std::string& peer() const override { return peer_; }
  tcp::socket& socket() { return socket_; }

 private:
  asio::awaitable<Result<void>> write_rest(std::span<const asio::const_buffer> from,
                                           std::size_t written) {
    std::vector<asio::const_buffer> rest;
    for (asio::const_buffer piece : from) {
      const std::size_t begun = std::min(written, piece.size());
      written -= begun;
      piece += begun;
      if (piece.size() > 0) rest.push_back(piece);
    }
    auto [error, bytes] = co_await asio::async_write(socket_, rest, one_turn, kAsTuple);
    (void)bytes;
    if (error) co_return map_error(error);
    co_return Result<void>{};
  }

  tcp::socket socket_;
  std::string peer_ = "unknown";
};

class AsioAcceptor final : public Acceptor {
 public:
  explicit AsioAcceptor(tcp::acceptor acceptor) : acceptor_(std::move(acceptor)) {}

  asio::awaitable<Result<std::unique_ptr<Stream>>> accept() override {
    auto [error, socket] = co_await acceptor_.async_accept(kAsTuple);
    if (error) co_return map_error(error);
    std::unique_ptr<Stream> stream = std::make_unique<AsioStream>(std::move(socket));
    co_return std::move(stream);
  }

  void close() override {
    boost::system::error_code ignored;
    acceptor_.close(ignored);
  }

  Endpoint local() const override {
    boost::system::error_code ignored;
    const auto endpoint = acceptor_.local_endpoint(ignored);
    return {endpoint.address().to_string(), endpoint.port()};
  }

 private:
  tcp::acceptor acceptor_;
};

}  // namespace

struct AsioNetwork::Attempt {
  tcp::resolver resolver;
  tcp::socket socket;
  bool late = false;

  void give_up() {
    late = true;
    resolver.cancel();
    boost::system::error_code ignored;
    socket.close(ignored);
  }
};

void AsioNetwork::cancel_connects() {
  for (const auto& weak : attempts_) {
    if (const auto attempt = weak.lock()) attempt->give_up();
  }
}

asio::awaitable<Result<std::unique_ptr<Stream>>> AsioNetwork::connect(Endpoint to,
                                                                      TimePoint deadline) {
  auto attempt = std::make_shared<Attempt>(
      Attempt{tcp::resolver(runtime_.context()), tcp::socket(runtime_.context())});
  attempts_.remove_if([](const auto& weak) { return weak.expired(); });
  attempts_.push_back(attempt);
  const auto timer = runtime_.start_timer(deadline, [attempt] { attempt->give_up(); });
  const std::string service = std::to_string(to.port);
  boost::system::error_code resolve_error;
  tcp::resolver::results_type addresses;
  boost::system::error_code not_literal;
  const auto literal = asio::ip::make_address(to.host, not_literal);
  if (!not_literal) {
    // Names are resolved one after the other: a literal does not wait behind one that hangs.
    addresses =
        tcp::resolver::results_type::create(tcp::endpoint(literal, to.port), to.host, service);
  } else {
    std::tie(resolve_error, addresses) =
        co_await attempt->resolver.async_resolve(to.host, service, kAsTuple);
  }
  if (resolve_error && to.host == "localhost" && !attempt->late) {
    // Loopback by definition (RFC 6761), also on a machine without /etc/hosts.
    auto [again, loopback] =
        co_await attempt->resolver.async_resolve("127.0.0.1", service, kAsTuple);
    resolve_error = again;
    addresses = std::move(loopback);
  }
  boost::system::error_code error = resolve_error;
  if (!error) {
    error = asio::error::make_error_code(asio::error::host_not_found);
    boost::system::error_code not_refused;
    for (const auto& address : addresses) {
      if (attempt->late) break;
      boost::system::error_code ignored;
      attempt->socket.close(ignored);
      attempt->socket.open(address.endpoint().protocol(), error);
      if (error) continue;
      auto [connect_error] = co_await attempt->socket.async_connect(address.endpoint(), kAsTuple);
      error = connect_error;
      if (!error) break;
      if (error != asio::error::make_error_code(asio::error::connection_refused))
        not_refused = error;
    }
    if (error && not_refused) error = not_refused;
  }
  runtime_.cancel_timer(timer);
  if (attempt->late) co_return make_error_code(BaseErrc::timed_out);
  if (error) co_return map_error(error);
  std::unique_ptr<Stream> stream = std::make_unique<AsioStream>(std::move(attempt->socket));
  co_return std::move(stream);
}

Result<std::unique_ptr<Acceptor>> AsioNetwork::listen(const Endpoint& at) {
  boost::system::error_code error;
  tcp::resolver resolver(runtime_.context());
  const auto addresses =
      resolver.resolve(at.host, std::to_string(at.port), tcp::resolver::passive, error);
  if (error || addresses.empty()) return make_error_code(BaseErrc::not_found);
  const tcp::endpoint endpoint = addresses.begin()->endpoint();
  tcp::acceptor acceptor(runtime_.context());
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error && endpoint.protocol() == tcp::v6())
    acceptor.set_option(asio::ip::v6_only(false), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) return map_error(error);
  std::unique_ptr<Acceptor> result = std::make_unique<AsioAcceptor>(std::move(acceptor));
  return result;
}

Result<std::unique_ptr<Stream>> move_stream(std::unique_ptr<Stream> stream, RealRuntime& to) {
  auto& from = static_cast<AsioStream&>(*stream).socket();
  boost::system::error_code error;
  const auto protocol = from.local_endpoint(error).protocol();
  if (error) return map_error(error);
  const auto handle = from.release(error);
  if (error) return map_error(error);
  tcp::socket socket(to.context());
  socket.assign(protocol, handle, error);
  if (error) return map_error(error);
  std::unique_ptr<Stream> moved = std::make_unique<AsioStream>(std::move(socket), stream->peer());
  return moved;
}

}  // namespace mq::base
