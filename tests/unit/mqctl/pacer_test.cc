#include "mqctl/bench/pacer.h"

#include <gtest/gtest.h>

namespace mq::mqctl {
namespace {

using Clock = Pacer::Clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

TEST(Pacer, EventsAreEvenlySpaced) {
  const Clock::time_point start{};
  const Pacer pacer(1000, start);
  EXPECT_EQ(pacer.due(0), start);
  EXPECT_EQ(pacer.due(1), start + milliseconds(1));
  EXPECT_EQ(pacer.due(86'400'000), start + std::chrono::hours(24));
}

TEST(Pacer, AfterAStallAllThatIsDueIsDueAtOnce) {
  const Clock::time_point start{};
  const Pacer pacer(1000, start);
  EXPECT_EQ(pacer.due_count(start), 1U);
  EXPECT_EQ(pacer.due_count(start + microseconds(500)), 1U);
  EXPECT_EQ(pacer.due_count(start + microseconds(50'500)), 51U);
}

TEST(Pacer, AnInterruptEndsTheSleep) {
  EXPECT_FALSE(Pacer::sleep_until(Clock::now() + std::chrono::hours(1), [] { return true; }));
  EXPECT_TRUE(Pacer::sleep_until(Clock::now() - milliseconds(1), [] { return false; }));
}

}  // namespace
}  // namespace mq::mqctl
