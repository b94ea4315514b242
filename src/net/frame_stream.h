#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "base/network.h"
#include "base/wait_list.h"
#include "protocol/frame.h"

namespace mq::net {

/// One frame as received: head, control header and payload lie in one pooled block.
struct Frame {
  protocol::FrameHead head;
  base::Buffer body;  ///< header, then payload
  base::Bytes header;
  base::MutableBytes payload;  ///< the receiver owns the block until it shares it, so the broker
                               ///< may stamp batches in place
};

/// Why no further frame comes: base errors (end_of_stream, connection_lost, closed) or
/// protocol::FrameErrc.
///
/// Reads frames from a stream, in order. The head is checked before memory is taken; the size of
/// what is taken is asked of the budget first, and while the budget is spent the socket is not read
/// (TCP pushes back). A small read-ahead area picks up the next head in the same system call. One
/// call at a time, on the stream's runtime.
class FrameReader {
 public:
  /// Suspends until `bytes` may be taken; the matching release is the caller's business.
  using TakeBudget = std::function<asio::awaitable<void>(std::size_t bytes)>;

  FrameReader(base::Stream& stream, std::uint32_t frame_bytes_max)
      : stream_(stream), frame_bytes_max_(frame_bytes_max) {}

  void set_frame_bytes_max(std::uint32_t bytes) { frame_bytes_max_ = bytes; }
  void set_budget(TakeBudget take) { take_budget_ = std::move(take); }
  /// While true a frame's block starts small and grows with the bytes that arrive, so that a peer
  /// nobody knows yet gets memory for what it sends, not for what it claims. For the time before
  /// Hello.
  void set_grow_with_bytes(bool grow) { grow_with_bytes_ = grow; }
  /// Called when the first byte of a frame is there (true) and when the frame is complete (false):
  /// the owner runs the deadline for a whole frame from it.
  void on_frame_progress(std::function<void(bool started)> call) {
    frame_progress_ = std::move(call);
  }

  /// Begins with what an earlier reader of the stream had buffered. Before anything is read.
  void begin_with(base::Bytes ahead);
  /// Exactly `bytes` raw bytes (the preface). At most kAheadBytes.
  asio::awaitable<base::Result<std::string>> read_raw(std::size_t bytes);
  /// What has been read ahead and not yet consumed, for recognising foreign protocols.
  [[nodiscard]] base::Bytes buffered() const noexcept {
    return {ahead_.data() + ahead_begin_, ahead_end_ - ahead_begin_};
  }
  /// Reads until at least `bytes` are buffered.
  asio::awaitable<base::Result<void>> fill(std::size_t bytes);

  /// header_too_large keeps the stream usable: the frame is skipped and its head is in last_head().
  asio::awaitable<base::Result<Frame>> next();
  [[nodiscard]] const protocol::FrameHead& last_head() const noexcept { return last_head_; }

 private:
  static constexpr std::size_t kAheadBytes = 2048;
  static constexpr std::size_t kFirstStepBytes = 4096;

  asio::awaitable<base::Result<void>> read_body(base::MutableBytes into);
  asio::awaitable<base::Result<base::Buffer>> read_block(std::size_t bytes);
  asio::awaitable<base::Result<void>> skip(std::size_t bytes);

  base::Stream& stream_;
  std::uint32_t frame_bytes_max_;
  TakeBudget take_budget_;
  std::function<void(bool)> frame_progress_;
  bool grow_with_bytes_ = false;
  protocol::FrameHead last_head_;
  std::array<std::byte, kAheadBytes> ahead_;
  std::size_t ahead_begin_ = 0;
  std::size_t ahead_end_ = 0;
};

/// A frame to be sent: encoded head and header, then payload pieces, which stay alive until they
/// are written.
struct OutgoingFrame {
  std::string head_and_header;
  std::vector<base::SharedBytes> payload;
  std::function<void()> written;  ///< called once the frame is written; not if it is given up
  /// May wait until what else is ready on this thread has run, so that more frames join its write.
  bool gather = false;
  std::shared_ptr<void> held;  ///< goes away when the frame is written or given up

  [[nodiscard]] std::size_t bytes() const noexcept;
};

/// Writes frames in the order given; everything queued goes out in one gathered write. On the
/// stream's runtime.
class FrameWriter {
 public:
  FrameWriter(base::Runtime& runtime, base::Stream& stream)
      : stream_(stream), changed_(runtime), drained_(runtime), runtime_(runtime) {}

  /// Queues a frame. The caller bounds what it queues by queued_bytes() and wait_below().
  void push(OutgoingFrame frame);
  [[nodiscard]] std::size_t queued_bytes() const noexcept { return queued_bytes_; }
  /// Suspends while more than `bytes` are queued; false when the writer has ended, or `deadline`
  /// came first. With 0 nothing is queued or being written afterwards.
  asio::awaitable<bool> wait_below(std::size_t bytes,
                                   base::TimePoint deadline = base::TimePoint::max());
  /// Writes until close() or an error, which it returns. Run once, by the connection's owner.
  asio::awaitable<base::Result<void>> run();
  /// Ends run() once what is queued is written.
  void finish();
  /// Ends run() now.
  void close();
  /// When the write in progress began; the owner's deadline for stalled peers looks at it.
  /// TimePoint::max(): none.
  [[nodiscard]] base::TimePoint writing_since() const noexcept { return writing_since_; }

 private:
  /// Suspends once behind everything that is ready on this thread.
  asio::awaitable<void> gather_more();
  /// Moves what one write takes from the queue to `writing` and lists its pieces; returns their
  /// bytes.
  std::size_t gather(std::vector<OutgoingFrame>& writing, std::vector<asio::const_buffer>& pieces);

  base::Stream& stream_;
  std::deque<OutgoingFrame> queue_;
  std::size_t queued_bytes_ = 0;
  bool finishing_ = false;
  bool closed_ = false;
  bool idle_ = false;
  base::WaitList changed_;  // something to write, or the end
  base::WaitList drained_;  // queued_bytes_ fell, or the end
  base::Runtime& runtime_;
  base::TimePoint writing_since_ = base::TimePoint::max();
};

}  // namespace mq::net
