#include "net/frame_stream.h"

#include <cstring>

#include "base/check.h"

namespace mq::net {

using base::Result;

asio::awaitable<Result<void>> FrameReader::fill(std::size_t bytes) {
  MQ_CHECK(bytes <= kAheadBytes, "{} bytes do not fit into the read-ahead area", bytes);
  if (ahead_end_ - ahead_begin_ >= bytes) co_return Result<void>{};
  std::memmove(ahead_.data(), ahead_.data() + ahead_begin_, ahead_end_ - ahead_begin_);
  ahead_end_ -= ahead_begin_;
  ahead_begin_ = 0;
  while (ahead_end_ < bytes) {
    const asio::mutable_buffer into(ahead_.data() + ahead_end_, kAheadBytes - ahead_end_);
    auto got = co_await stream_.read_some(std::span(&into, 1));
    if (!got) co_return got.error();
    ahead_end_ += *got;
  }
  co_return Result<void>{};
}

void FrameReader::begin_with(base::Bytes ahead) {
  MQ_CHECK(ahead.size() <= kAheadBytes && ahead_end_ == 0, "{} bytes to begin with", ahead.size());
  std::memcpy(ahead_.data(), ahead.data(), ahead.size());
  ahead_end_ = ahead.size();
}

asio::awaitable<Result<std::string>> FrameReader::read_raw(std::size_t bytes) {
  MQ_CO_TRY_VOID(co_await fill(bytes));
  std::string text(base::as_text(buffered().first(bytes)));
  ahead_begin_ += bytes;
  co_return text;
}

asio::awaitable<Result<void>> FrameReader::read_body(base::MutableBytes into) {
  const std::size_t early = std::min(into.size(), ahead_end_ - ahead_begin_);
  std::memcpy(into.data(), ahead_.data() + ahead_begin_, early);
  ahead_begin_ += early;
  std::size_t done = early;
  while (done < into.size()) {
    // The area is empty here: what follows this frame lands in it with the same system call.
    const std::array<asio::mutable_buffer, 2> pieces{
        asio::mutable_buffer(into.data() + done, into.size() - done),
        asio::mutable_buffer(ahead_.data(), kAheadBytes)};
    auto got = co_await stream_.read_some(pieces);
    if (!got) co_return got.error();
    const std::size_t body = std::min(*got, into.size() - done);
    done += body;
    ahead_begin_ = 0;
    ahead_end_ = *got - body;
  }
  co_return Result<void>{};
}

asio::awaitable<Result<base::Buffer>> FrameReader::read_block(std::size_t bytes) {
  auto& pool = base::BufferPool::shared();
  std::size_t have = grow_with_bytes_ ? std::min(bytes, kFirstStepBytes) : bytes;
  base::Buffer block = pool.take(have);
  MQ_CO_TRY_VOID(co_await read_body(block.bytes().first(have)));
  while (have < bytes) {
    const std::size_t next = std::min(bytes, have * 4);
    base::Buffer larger = pool.take(next);
    std::memcpy(larger.data(), block.data(), have);
    MQ_CO_TRY_VOID(co_await read_body(larger.bytes().subspan(have, next - have)));
    block = std::move(larger);
    have = next;
  }
  co_return block;
}

asio::awaitable<Result<void>> FrameReader::skip(std::size_t bytes) {
  while (bytes > 0) {
    if (ahead_begin_ == ahead_end_) {
      MQ_CO_TRY_VOID(co_await fill(1));
    }
    const std::size_t step = std::min(bytes, ahead_end_ - ahead_begin_);
    ahead_begin_ += step;
    bytes -= step;
  }
  co_return Result<void>{};
}

asio::awaitable<Result<Frame>> FrameReader::next() {
  MQ_CO_TRY_VOID(co_await fill(1));
  if (frame_progress_) frame_progress_(true);
  MQ_CO_TRY_VOID(co_await fill(protocol::kFrameHeadBytes));
  std::array<std::byte, protocol::kFrameHeadBytes> head_bytes;
  std::memcpy(head_bytes.data(), ahead_.data() + ahead_begin_, head_bytes.size());
  ahead_begin_ += head_bytes.size();

  last_head_ = protocol::load_frame_head(head_bytes);
  const auto head = protocol::decode_frame_head(head_bytes, frame_bytes_max_);
  if (!head) {
    if (head.error() != protocol::make_error_code(protocol::FrameErrc::header_too_large))
      co_return head.error();
    MQ_CO_TRY_VOID(co_await skip(last_head_.body_bytes()));
    if (frame_progress_) frame_progress_(false);
    co_return head.error();
  }
  if (take_budget_) co_await take_budget_(head->body_bytes());

  Frame frame;
  frame.head = *head;
  MQ_CO_TRY(frame.body, co_await read_block(head->body_bytes()));
  const base::MutableBytes body = frame.body.bytes().first(head->body_bytes());
  if (frame_progress_) frame_progress_(false);
  frame.header = body.first(head->header_bytes);
  frame.payload = body.subspan(head->header_bytes);
  if (!protocol::header_crc_matches(head_bytes, frame.header)) {
    co_return protocol::make_error_code(protocol::FrameErrc::bad_header_crc);
  }
  co_return frame;
}

std::size_t OutgoingFrame::bytes() const noexcept {
  std::size_t total = head_and_header.size();
  for (const auto& piece : payload) total += piece.bytes.size();
  return total;
}

void FrameWriter::push(OutgoingFrame frame) {
  if (closed_) return;
  queued_bytes_ += frame.bytes();
  queue_.push_back(std::move(frame));
  if (idle_) changed_.notify_all();
}

asio::awaitable<bool> FrameWriter::wait_below(std::size_t bytes, base::TimePoint deadline) {
  while (!closed_ && queued_bytes_ > bytes) {
    const bool notified = co_await drained_.wait_until(deadline);
    if (!notified) co_return false;
  }
  co_return !closed_;
}

std::size_t FrameWriter::gather(std::vector<OutgoingFrame>& writing,
                                std::vector<asio::const_buffer>& pieces) {
  constexpr std::size_t kPiecesMax = 256;  // a frame of more pieces goes out alone
  std::size_t count = 0;
  std::size_t bytes = 0;
  while (!queue_.empty()) {
    const std::size_t more = 1 + queue_.front().payload.size();
    if (count > 0 && count + more > kPiecesMax) break;
    count += more;
    bytes += queue_.front().bytes();
    writing.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  // Only now, since a moved short string moves its bytes.
  for (const auto& frame : writing) {
    pieces.emplace_back(frame.head_and_header.data(), frame.head_and_header.size());
    for (const auto& piece : frame.payload)
      pieces.emplace_back(piece.bytes.data(), piece.bytes.size());
  }
  return bytes;
}

asio::awaitable<void> FrameWriter::gather_more() {
  return asio::post(runtime_.executor(), asio::use_awaitable);
}

asio::awaitable<Result<void>> FrameWriter::run() {
  std::vector<OutgoingFrame> writing;
  std::vector<asio::const_buffer> pieces;
  while (true) {
    while (queue_.empty() && !closed_ && !finishing_) {
      idle_ = true;
      co_await changed_.wait();
      idle_ = false;
      if (!queue_.empty() && queue_.front().gather) co_await gather_more();
    }
    if (closed_ || queue_.empty()) break;
    const std::size_t bytes = gather(writing, pieces);
    writing_since_ = runtime_.now();
    auto written = co_await stream_.write_all(pieces);
    writing_since_ = base::TimePoint::max();
    for (const auto& frame : writing) {
      if (written && frame.written) frame.written();
    }
    writing.clear();
    pieces.clear();
    queued_bytes_ -= bytes;
    drained_.notify_all();
    if (!written) {
      close();
      co_return written.error();
    }
  }
  closed_ = true;
  drained_.notify_all();
  co_return Result<void>{};
}

void FrameWriter::finish() {
  finishing_ = true;
  changed_.notify_all();
}

void FrameWriter::close() {
  closed_ = true;
  queue_.clear();
  changed_.notify_all();
  drained_.notify_all();
}

}  // namespace mq::net
