#include "base/buffer.h"

#include <array>
#include <bit>
#include <mutex>
#include <new>
#include <vector>

namespace mq::base {
namespace {

constexpr std::size_t kSmallestShift = 12;
constexpr std::size_t kClasses = 16;  // 4 KiB .. 128 MiB
constexpr std::size_t kHeader = 64;   // keeps the payload on a cache line of its own

}  // namespace

struct Buffer::Block {
  std::atomic<std::uint32_t> references{1};
  std::uint32_t size_class;
  std::size_t capacity;
  std::shared_ptr<BufferPool::Core> home;  // set while the block is handed out

  std::byte* payload() noexcept { return reinterpret_cast<std::byte*>(this) + kHeader; }
};

struct BufferPool::Core {
  std::mutex mutex;  // guards everything below
  std::array<std::vector<Buffer::Block*>, kClasses> idle;
  std::size_t idle_bytes = 0;
  std::size_t idle_bytes_max;

  ~Core() {
    for (auto& blocks : idle) {
      for (auto* block : blocks) destroy(block);
    }
  }
  static void destroy(Buffer::Block* block) noexcept {
    block->~Block();
    ::operator delete (static_cast<void*>(block), std::align_val_t{64});
  }
  void give_back(Buffer::Block* block) noexcept {
    {
      std::lock_guard lock(mutex);
      if (idle_bytes + block->capacity <= idle_bytes_max) {
        idle_bytes += block->capacity;
        idle[block->size_class].push_back(block);
        return;
      }
    }
    destroy(block);
  }
};

std::byte* Buffer::data() const noexcept { return block_ ? block_->payload() : nullptr; }
std::size_t Buffer::capacity() const noexcept { return block_ ? block_->capacity : 0; }

void Buffer::retain() noexcept {
  if (block_) block_->references.fetch_add(1, std::memory_order_relaxed);
}

void Buffer::release() noexcept {
  if (!block_ || block_->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const auto home = std::move(block_->home);
  home->give_back(std::exchange(block_, nullptr));
}

BufferPool::BufferPool(std::size_t idle_bytes_max) : core_(std::make_shared<Core>()) {
  core_->idle_bytes_max = idle_bytes_max;
}
BufferPool::~BufferPool() = default;

Buffer BufferPool::take(std::size_t bytes) {
  const std::size_t wanted = std::bit_ceil(std::max(bytes, std::size_t{1} << kSmallestShift));
  const auto size_class = static_cast<std::size_t>(std::countr_zero(wanted)) - kSmallestShift;
  if (size_class >= kClasses) throw std::bad_alloc();
  Buffer::Block* block = nullptr;
  {
    std::lock_guard lock(core_->mutex);
    auto& idle = core_->idle[size_class];
    if (!idle.empty()) {
      block = idle.back();
      idle.pop_back();
      core_->idle_bytes -= block->capacity;
    }
  }
  if (!block) {
    static_assert(sizeof(Buffer::Block) <= kHeader);
    void* memory = ::operator new (kHeader + wanted, std::align_val_t{64});
    block = new (memory) Buffer::Block;
    block->size_class = static_cast<std::uint32_t>(size_class);
    block->capacity = wanted;
  }
  block->references.store(1, std::memory_order_relaxed);
  block->home = core_;
  return Buffer(block);
}

BufferPool& BufferPool::shared() {
  static BufferPool* const pool =
      new BufferPool;  // never destroyed: buffers may be released while statics are torn down
  return *pool;
}

}  // namespace mq::base
