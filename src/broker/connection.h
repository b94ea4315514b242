#pragma once

#include <boost/intrusive/list.hpp>
#include <memory>
#include <string>

#include "broker/answer_order.h"
#include "broker/request.h"
#include "broker/worker.h"
#include "net/frame_stream.h"

namespace mq::broker {

/// Who waits for something on behalf of a connection and wants to know when that has become
/// pointless (the connection ended) or has to come to an end (the broker stops).
class ConnectionWaiter : public boost::intrusive::list_base_hook<
                             boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
 public:
  virtual void connection_ending() = 0;

 protected:
  ~ConnectionWaiter() = default;
};

/// What a client said about itself in Hello.
struct ClientIdentity {
  std::string name;  ///< printable
  std::uint64_t instance = 0;
  std::uint64_t connection_number = 0;
};

/// One client connection: preface, Hello, then pipelined requests. Requests are read while earlier
/// ones are under way; each is answered when it is done, produce requests for one partition in
/// order (PRO-3). Shared by the requests under way on it.
///
/// On its worker's runtime. Reading stops while too many requests or answers are under way, and
/// while the memory budget is spent. Deadlines: Limits. It ends when the peer closes, framing is
/// lost, or a request that wants no answer fails (PRO-2).
class Connection final : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Worker& worker, std::unique_ptr<base::Stream> stream);
  ~Connection();

  /// Returns when the connection has ended and its stream is closed; requests may outlive it.
  asio::awaitable<void> serve();
  /// Ends it now.
  void close();
  /// No new request is begun, long polls come to their end.
  void drain();
  /// Ends it once what is queued is written.
  void finish();
  /// Closes the connection if one of its deadlines has passed.
  void check_deadlines(base::TimePoint now);

  [[nodiscard]] Worker& worker() const noexcept { return worker_; }
  [[nodiscard]] const std::string& peer() const { return stream_->peer(); }
  [[nodiscard]] bool closed() const noexcept { return closed_; }
  [[nodiscard]] bool ending() const noexcept { return closed_ || draining_; }
  [[nodiscard]] std::size_t requests_under_way() const noexcept { return requests_under_way_; }
  [[nodiscard]] AnswerOrder& produce_order() noexcept { return produce_order_; }

  [[nodiscard]] const ClientIdentity* client() const noexcept {
    return said_hello_ ? &client_ : nullptr;
  }
  void hello(ClientIdentity client);

  // For Request.
  void request_began() noexcept { ++requests_under_way_; }
  void request_ended();
  void send(net::OutgoingFrame frame);
  void unanswerable_failed(const protocol::Status& status);

  [[nodiscard]] bool nothing_queued() const noexcept { return writer_.queued_bytes() == 0; }
  /// Suspends while more answers are queued than one connection may have; false when it ended.
  asio::awaitable<bool> room_for_answer();
  void add_waiter(ConnectionWaiter& waiter) { waiters_.push_back(waiter); }

 private:
  asio::awaitable<bool> read_preface();
  asio::awaitable<void> read_requests();
  asio::awaitable<void> take_memory(std::size_t bytes);
  asio::awaitable<void> write(std::shared_ptr<Connection> self);
  asio::awaitable<void> linger();
  asio::awaitable<void> wait_for_room();
  void refuse_foreign(protocol::ForeignProtocol protocol);
  /// True if the connection goes on.
  bool frame_failed(base::Error error);
  void refuse_frame(protocol::WireError error, std::string text);
  void dispatch(net::Frame frame);
  [[nodiscard]] std::string name() const;
  void time_out(std::string_view what);
  void wake_waiters();

  Worker& worker_;
  Core& core_;
  std::unique_ptr<base::Stream> stream_;
  net::FrameReader reader_;
  net::FrameWriter writer_;
  AnswerOrder produce_order_;
  base::WaitList room_;
  boost::intrusive::list<ConnectionWaiter, boost::intrusive::constant_time_size<false>> waiters_;
  ClientIdentity client_;
  net::Lease memory_;  // of the frame that is being read
  std::size_t requests_under_way_ = 0;
  base::TimePoint opened_at_;
  base::TimePoint last_frame_at_;
  base::TimePoint frame_began_at_ = base::TimePoint::max();  // max: none is being read
  bool said_hello_ = false;
  bool lingering_ = false;  // lost its framing: read and thrown away for a while
  bool draining_ = false;
  bool closed_ = false;
  bool writer_ended_ = false;
};

}  // namespace mq::broker
