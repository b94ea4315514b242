#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/bytes.h"

namespace mq::base {

class BufferPool;

/// A shared handle on one block of pooled memory. Copies share the block; the last one gives it
/// back to its pool. Whoever fills the block does so before sharing it: afterwards its bytes are
/// immutable. The count is atomic, so handles may cross threads; one handle is not itself
/// thread-safe.
class Buffer {
 public:
  Buffer() = default;
  Buffer(const Buffer& other) noexcept : block_(other.block_) { retain(); }
  Buffer(Buffer&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  Buffer& operator=(Buffer other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~Buffer() { release(); }

  [[nodiscard]] explicit operator bool() const noexcept { return block_ != nullptr; }
  [[nodiscard]] std::byte* data() const noexcept;
  [[nodiscard]] std::size_t capacity() const noexcept;
  [[nodiscard]] MutableBytes bytes() const noexcept { return {data(), capacity()}; }

 private:
  friend class BufferPool;
  struct Block;
  explicit Buffer(Block* block) noexcept : block_(block) {}
  void retain() noexcept;
  void release() noexcept;

  Block* block_ = nullptr;
};

/// Bytes together with the block that keeps them alive.
struct SharedBytes {
  Buffer owner;
  Bytes bytes;
};

/// Blocks by size class (powers of two from 4 KiB), kept for reuse up to `idle_bytes_max`: malloc
/// maps and unmaps blocks of 128 KiB and more, which costs a page fault per 4 KiB each time.
/// Thread-safe; buffers may outlive the pool.
class BufferPool {
 public:
  explicit BufferPool(std::size_t idle_bytes_max = std::size_t{64} << 20);
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  /// A block of at least `bytes` bytes with unspecified contents. The caller has bounded `bytes`.
  [[nodiscard]] Buffer take(std::size_t bytes);

  /// The process-wide pool.
  static BufferPool& shared();

  struct Core;

 private:
  std::shared_ptr<Core> core_;
};

}  // namespace mq::base
