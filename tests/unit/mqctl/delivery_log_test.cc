#include "mqctl/data/delivery_log.h"

#include "unit/mqctl/console_fixture.h"

namespace mq::mqctl {
namespace {

DeliveryRange range(std::int64_t first, const std::vector<std::uint64_t>& cookies,
                    const Error& error) {
  return {.topic = "t",
          .partition = 2,
          .first_offset = first,
          .count = cookies.size(),
          .cookies = cookies,
          .error = error};
}

TEST(DeliveryLog, PrintsALineForEachRecord) {
  testing::StringOutput out;
  DeliveryLog log(out, std::move(RecordFormat::parse("%t/%p@%o").format));
  const Error ok;
  log.delivered(range(40, {1, 2}, ok));
  EXPECT_EQ(out.text, "t/2@40\nt/2@41\n");
  EXPECT_EQ(log.summary().delivered, 2U);
  EXPECT_EQ(log.summary().partitions, 1U);
}

TEST(DeliveryLog, NamesTheFirstFailuresOnly) {
  testing::StringOutput out;
  DeliveryLog log(out, std::nullopt);
  Error error;
  error.code = Errc::record_too_large;
  log.delivered(range(-1, {3, 4, 5, 6, 7, 8, 9}, error));
  const auto summary = log.summary();
  EXPECT_EQ(summary.failed, 7U);
  ASSERT_EQ(summary.first_lost.size(), DeliveryLog::kNamed);
  EXPECT_EQ(summary.first_lost[0].number, 3U);
  EXPECT_FALSE(log.broken()) << "the next record may be small enough";
}

TEST(DeliveryLog, AFailureOfTheBrokerEndsTheInput) {
  testing::StringOutput out;
  DeliveryLog log(out, std::nullopt);
  Error error;
  error.code = Errc::delivery_timed_out;
  log.delivered(range(-1, {1}, error));
  EXPECT_TRUE(log.broken());
}

TEST(DeliveryLog, TimesSomeOfTheRecords) {
  testing::StringOutput out;
  DeliveryLog log(out, std::nullopt);
  const Error ok;
  for (std::uint64_t number = 1; number <= 100; ++number) log.sending(number);
  std::vector<std::uint64_t> all;
  for (std::uint64_t number = 1; number <= 100; ++number) all.push_back(number);
  log.delivered(range(0, all, ok));
  EXPECT_GT(log.summary().p99.count(), 0);
}

}  // namespace
}  // namespace mq::mqctl
