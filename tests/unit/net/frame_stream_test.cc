#include "net/frame_stream.h"

#include <gtest/gtest.h>

#include "scripted_stream.h"
#include "support/run.h"
#include "support/sim_runtime.h"

namespace mq::net {
namespace {

using protocol::FrameErrc;
using testing::ScriptedStream;

std::string frame(std::uint32_t correlation, const std::string& header,
                  const std::string& payload = {}) {
  protocol::FrameHead head;
  head.api_key = 3;
  head.correlation_id = correlation;
  return protocol::encode_frame(head, header, static_cast<std::uint32_t>(payload.size())) + payload;
}

struct FrameStreamTest : ::testing::Test {
  testing::Simulator simulator{1};
  testing::SimRuntime runtime{simulator};
  ScriptedStream stream{runtime};
  FrameReader reader{stream, 1U << 20};
  FrameWriter writer{runtime, stream};

  void settle() {
    while (simulator.step()) {
    }
  }
  base::Result<Frame> next() { return testing::run(simulator, reader.next()); }
  static OutgoingFrame outgoing(const std::string& bytes) {
    OutgoingFrame out;
    out.head_and_header = bytes;
    return out;
  }
};

TEST_F(FrameStreamTest, FramesComeWholeHoweverTheirBytesArrive) {
  const std::string payload(5000, 'p');
  stream.feed_bytewise(frame(1, "header one", payload));
  stream.feed(frame(2, "header two") + frame(3, "") + frame(4, "four", payload));
  for (std::uint32_t id = 1; id <= 4; ++id) {
    const auto got = next();
    ASSERT_TRUE(got) << id;
    EXPECT_EQ(got->head.correlation_id, id);
    EXPECT_EQ(got->payload.size(), id == 1 || id == 4 ? 5000U : 0U);
    if (id == 1) {
      EXPECT_EQ(base::as_text(got->header), "header one");
    }
  }
  EXPECT_FALSE(stream.input_left());
}

TEST_F(FrameStreamTest, TheNextHeadComesWithTheBodyBeforeIt) {
  stream.feed(frame(1, "a", std::string(100'000, 'x')) + frame(2, "b"));
  ASSERT_TRUE(next());
  const int reads = stream.reads();
  ASSERT_TRUE(next());
  EXPECT_EQ(stream.reads(), reads);
}

TEST_F(FrameStreamTest, AnEndInsideAFrameIsAnEnd) {
  const std::string whole = frame(1, "header", "payload");
  stream.feed(whole.substr(0, whole.size() - 1));
  stream.end();
  EXPECT_EQ(next().error(), make_error_code(base::BaseErrc::end_of_stream));
}

// PRO-1
TEST_F(FrameStreamTest, ASizeAboveTheLimitIsRefusedBeforeTheBudgetIsAsked) {
  bool asked = false;
  reader.set_budget([&](std::size_t) -> asio::awaitable<void> {
    asked = true;
    return runtime.sleep_for(base::Duration(0));
  });
  std::string head = frame(7, "header").substr(0, 20);
  base::store_le<std::uint32_t>(reinterpret_cast<std::byte*>(head.data()), 0x7fffffff);
  stream.feed(head);
  EXPECT_EQ(next().error(), make_error_code(FrameErrc::too_large));
  EXPECT_FALSE(asked);
  EXPECT_EQ(reader.last_head().correlation_id, 7U);
}

// PRO-1
TEST_F(FrameStreamTest, NothingOfABodyIsReadBeforeTheBudgetGrantsIt) {
  std::size_t asked = 0;
  reader.set_budget([&](std::size_t bytes) -> asio::awaitable<void> {
    asked = bytes;
    return runtime.sleep_for(std::chrono::seconds(1));
  });
  const std::string whole = frame(1, "header", std::string(100'000, 'x'));
  stream.feed(whole.substr(0, 20));
  stream.feed(whole.substr(20));
  const auto began = runtime.now();
  const auto reading = testing::start_for_outcome(simulator.executor(), reader.next(), [] {});
  while (asked == 0) ASSERT_TRUE(simulator.step());
  EXPECT_EQ(asked, 6U + 100'000U);
  EXPECT_EQ(stream.reads(), 1);
  settle();
  ASSERT_TRUE(reading->value);
  EXPECT_TRUE(*reading->value);
  EXPECT_GE(runtime.now() - began, std::chrono::seconds(1));
}

TEST_F(FrameStreamTest, AHeaderAboveItsLimitIsSkippedAndTheStreamGoesOn) {
  reader.set_frame_bytes_max(8U << 20);
  stream.feed(frame(1, std::string(protocol::kHeaderBytesMax + 1, 'h'), "payload"));
  stream.feed(frame(2, "next"));
  EXPECT_EQ(next().error(), make_error_code(FrameErrc::header_too_large));
  EXPECT_EQ(reader.last_head().correlation_id, 1U);
  const auto after = next();
  ASSERT_TRUE(after);
  EXPECT_EQ(after->head.correlation_id, 2U);
}

TEST_F(FrameStreamTest, AWrongChecksumIsFound) {
  std::string whole = frame(1, "header");
  whole.back() = static_cast<char>(whole.back() ^ 1);
  stream.feed(whole);
  EXPECT_EQ(next().error(), make_error_code(FrameErrc::bad_header_crc));
}

TEST_F(FrameStreamTest, GrowingWithTheBytesGivesTheSameFrames) {
  reader.set_grow_with_bytes(true);
  const std::string payload(50'000, 'p');
  stream.feed(frame(1, "header", payload) + frame(2, "x"));
  const auto got = next();
  ASSERT_TRUE(got);
  EXPECT_EQ(base::as_text(got->payload), payload);
  EXPECT_TRUE(next());
}

TEST_F(FrameStreamTest, ProgressTellsFirstAndLastByte) {
  std::vector<bool> calls;
  reader.on_frame_progress([&](bool began) { calls.push_back(began); });
  const auto reading = testing::start_for_outcome(simulator.executor(), reader.next(), [] {});
  settle();
  EXPECT_TRUE(calls.empty());
  const std::string whole = frame(1, "header");
  stream.feed(whole.substr(0, 1));
  settle();
  EXPECT_EQ(calls, std::vector<bool>{true});
  stream.feed(whole.substr(1));
  settle();
  EXPECT_EQ(calls, (std::vector<bool>{true, false}));
  EXPECT_TRUE(reading->value);
}

TEST_F(FrameStreamTest, WhatIsQueuedTogetherGoesOutInOneWrite) {
  const auto running = testing::start_for_outcome(simulator.executor(), writer.run(), [] {});
  settle();
  writer.push(outgoing("one "));
  writer.push(outgoing("two "));
  OutgoingFrame third = outgoing("three ");
  const std::string payload = "payload";
  third.payload.push_back({{}, base::as_bytes(payload)});
  writer.push(std::move(third));
  EXPECT_EQ(writer.queued_bytes(), 4U + 4U + 6U + 7U);
  settle();
  EXPECT_EQ(stream.writes(), std::vector<std::string>{"one two three payload"});
  EXPECT_EQ(writer.queued_bytes(), 0U);
  writer.close();
  settle();
  EXPECT_TRUE(running->value);
}

TEST_F(FrameStreamTest, FinishWritesTheRestAndEnds) {
  writer.push(outgoing("rest"));
  const auto running = testing::start_for_outcome(simulator.executor(), writer.run(), [] {});
  writer.finish();
  settle();
  ASSERT_TRUE(running->value);
  EXPECT_TRUE(*running->value);
  EXPECT_EQ(stream.writes(), std::vector<std::string>{"rest"});
}

TEST_F(FrameStreamTest, WhatAFrameHoldsGoesWithIt) {
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = held;
  int written = 0;
  OutgoingFrame out = outgoing("x");
  out.held = std::move(held);
  out.written = [&] { ++written; };
  stream.set_stuck(true);
  const auto running = testing::start_for_outcome(simulator.executor(), writer.run(), [] {});
  writer.push(std::move(out));
  settle();
  EXPECT_FALSE(watch.expired());
  EXPECT_NE(writer.writing_since(), base::TimePoint::max());
  stream.set_stuck(false);
  settle();
  EXPECT_TRUE(watch.expired());
  EXPECT_EQ(written, 1);
  EXPECT_EQ(writer.writing_since(), base::TimePoint::max());
  writer.close();
  settle();
}

TEST_F(FrameStreamTest, WaitingForRoomEndsWithRoomOrWithTheWriter) {
  stream.set_stuck(true);
  const auto running = testing::start_for_outcome(simulator.executor(), writer.run(), [] {});
  writer.push(outgoing(std::string(1000, 'x')));
  const auto room = testing::start_for_outcome(simulator.executor(), writer.wait_below(999), [] {});
  settle();
  EXPECT_FALSE(room->value);
  stream.set_stuck(false);
  settle();
  EXPECT_EQ(room->value, true);
  stream.set_stuck(true);
  writer.push(outgoing(std::string(1000, 'x')));
  const auto none = testing::start_for_outcome(simulator.executor(), writer.wait_below(999), [] {});
  settle();
  stream.close();
  settle();
  EXPECT_EQ(none->value, false);
  ASSERT_TRUE(running->value);
  EXPECT_FALSE(*running->value);
}

}  // namespace
}  // namespace mq::net
