#include "base/buffer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <thread>
#include <vector>

namespace mq::base {
namespace {

TEST(BufferPool, GivesAtLeastWhatWasAsked) {
  BufferPool pool;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{4096},
                                  std::size_t{4097}, std::size_t{1} << 20, std::size_t{9} << 20}) {
    const Buffer buffer = pool.take(bytes);
    ASSERT_TRUE(buffer);
    EXPECT_GE(buffer.capacity(), bytes);
    EXPECT_EQ(buffer.bytes().size(), buffer.capacity());
    if (bytes > 0) std::memset(buffer.data(), 0x5a, bytes);
  }
}

TEST(BufferPool, ReusesABlockWhoseLastHandleWent) {
  BufferPool pool;
  Buffer first = pool.take(10'000);
  const auto* const address = first.data();
  Buffer copy = first;
  first = Buffer();
  EXPECT_NE(pool.take(10'000).data(), address);
  copy = Buffer();
  EXPECT_TRUE(pool.take(10'000).data() != nullptr);
}

TEST(BufferPool, BlockLivesAsLongAsOneHandle) {
  BufferPool pool;
  Buffer first = pool.take(100);
  std::memcpy(first.data(), "still here", 10);
  const SharedBytes shared{first, Bytes(first.data(), 10)};
  first = Buffer();
  const Buffer other = pool.take(100);
  std::memset(other.data(), 0, 100);
  EXPECT_EQ(as_text(shared.bytes), "still here");
}

TEST(BufferPool, BuffersMayOutliveThePool) {
  std::optional<BufferPool> pool(std::in_place);
  const Buffer buffer = pool->take(5000);
  pool.reset();
  std::memset(buffer.data(), 1, 5000);
  EXPECT_EQ(buffer.data()[4999], std::byte{1});
}

TEST(BufferPool, HandlesCrossThreads) {
  BufferPool pool(std::size_t{1} << 20);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&pool, t] {
      for (int i = 0; i < 2000; ++i) {
        const Buffer buffer = pool.take(4096u << (i % 4));
        std::memset(buffer.data(), t, 4096);
        const Buffer copy = buffer;
        ASSERT_EQ(copy.data()[4095], std::byte(t));
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST(Buffer, EmptyHandleHasNoBytes) {
  const Buffer buffer;
  EXPECT_FALSE(buffer);
  EXPECT_EQ(buffer.capacity(), 0u);
  EXPECT_TRUE(buffer.bytes().empty());
}

}  // namespace
}  // namespace mq::base
