#pragma once

#include <boost/intrusive/list.hpp>
#include <memory>
#include <optional>
#include <string>

#include "broker/answer_order.h"
#include "broker/request.h"
#include "broker/worker.h"
#include "broker/worker_affinity.h"
#include "model/isr.h"
#include "net/frame_stream.h"
#include "protocol/replica_fetch.h"

namespace mq::broker {

class ReplicaSession;

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

/// A connection on its way to another worker: at rest, nothing under way on it.
struct MovingConnection {
  std::unique_ptr<base::Stream> stream;
  std::string read_ahead;  ///< bytes of frames that have not been looked at
  ClientIdentity client;
  base::TimePoint opened_at;
  base::TimePoint last_frame_at;
};

/// One client connection: preface, Hello, then pipelined requests. Requests are read while earlier
/// ones are under way; each is answered when it is done, produce requests for one partition in
/// order (PRO-3). Shared by the requests under way on it.
///
/// On its worker's runtime. Reading stops while too many requests or answers are under way, and
/// while the memory budget is spent. Deadlines: Limits. It ends when the peer closes, framing is
/// lost, or a request that wants no answer fails (PRO-2).
///
/// After its first data requests it moves once to the worker that owns clearly most of the
/// partitions they named: reading stops between two frames, long polls are answered with what is
/// there, and when all is answered and written the stream goes over and this object ends. One on
/// which a broker follows moves before its first request is taken in, which goes along unread.
class Connection final : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Worker& worker, std::unique_ptr<base::Stream> stream);
  /// Goes on with one that comes from another worker; it stays here.
  Connection(Worker& worker, MovingConnection moving);
  ~Connection();

  /// Returns when the connection has ended and its stream is closed, or when it departs; requests
  /// may outlive an end.
  asio::awaitable<void> serve();
  /// After serve(): where the connection goes on, null if it has ended.
  [[nodiscard]] Worker* departs_to() const noexcept { return departed_ ? moves_to_ : nullptr; }
  /// What goes there; once.
  [[nodiscard]] MovingConnection depart();
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
  /// Nothing new may wait on it.
  [[nodiscard]] bool ending() const noexcept { return closed_ || draining_ || leaving_; }
  [[nodiscard]] std::size_t requests_under_way() const noexcept { return requests_under_way_; }
  [[nodiscard]] AnswerOrder& produce_order() noexcept { return produce_order_; }

  [[nodiscard]] const ClientIdentity* client() const noexcept {
    return said_hello_ ? &client_ : nullptr;
  }
  void hello(ClientIdentity client);
  /// It is the one on which a broker asks this one, as the controller, for images: when it ends the
  /// controller is told.
  void speaks_for(model::IsrMember registration) { registration_ = registration; }
  /// Of a broker that follows partitions which this one leads; made when it is first asked for.
  [[nodiscard]] ReplicaSession& replica_session();

  /// A produce or fetch request: `entries` name their partitions.
  template <class Entries>
  void count_data_request(const Entries& entries) {
    if (!affinity_) [[likely]]
      return;
    for (const auto& entry : entries) count_partition(entry.partition);
    judge_affinity();
  }

  /// The first request of a broker that follows: true if another worker owns most of what it
  /// subscribes, and gets the request.
  bool take_elsewhere(const std::vector<protocol::ReplicaSubscribe>& entries, Request& request);

  // For Request.
  void request_began(bool data) noexcept;
  void request_ended(bool data);
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
  asio::awaitable<bool> leave();
  asio::awaitable<bool> come_to_rest();
  void count_partition(const model::PartitionId& partition);
  void judge_affinity();
  void stay();
  asio::awaitable<void> wait_for_room();
  void refuse_foreign(protocol::ForeignProtocol protocol);
  /// True if the connection goes on.
  bool frame_failed(base::Error error);
  void refuse_frame(protocol::WireError error, std::string text);
  void dispatch(net::Frame frame);
  [[nodiscard]] std::string name() const;
  void time_out(std::string_view what);
  void wake_waiters();
  void tell_controller();

  Worker& worker_;
  Core& core_;
  std::unique_ptr<base::Stream> stream_;
  net::FrameReader reader_;
  net::FrameWriter writer_;
  AnswerOrder produce_order_;
  base::WaitList room_;
  boost::intrusive::list<ConnectionWaiter, boost::intrusive::constant_time_size<false>> waiters_;
  ClientIdentity client_;
  std::optional<model::IsrMember> registration_;     // of the broker that speaks on it
  std::shared_ptr<ReplicaSession> replica_session_;  // null: nobody follows on it
  net::Lease memory_;                                // of the frame that is being read
  std::size_t requests_under_way_ = 0;
  std::size_t other_requests_ = 0;            // among them: no produce, no fetch
  std::unique_ptr<WorkerAffinity> affinity_;  // until it is judged
  Worker* moves_to_ = nullptr;                // judged: it should
  std::optional<net::Frame> unread_;          // of the request for which it moves
  base::TimePoint opened_at_;
  base::TimePoint last_frame_at_;
  base::TimePoint frame_began_at_ = base::TimePoint::max();  // max: none is being read
  bool said_hello_ = false;
  bool lingering_ = false;  // lost its framing: read and thrown away for a while
  bool draining_ = false;
  bool leaving_ = false;   // comes to rest
  bool departed_ = false;  // is at rest and goes to moves_to_
  bool closed_ = false;
  bool writer_ended_ = false;
};

}  // namespace mq::broker
