#include "mqctl/data/read_plan.h"

#include <gtest/gtest.h>

namespace mq::mqctl {
namespace {

OffsetSpan span(std::string_view text) { return parse_offsets(text, 0).span.value(); }

RecordView record(std::int32_t partition, std::int64_t offset) {
  RecordView view;
  view.topic = "t";
  view.partition = partition;
  view.offset = offset;
  return view;
}

TEST(ReadPlan, ReachesTheEndThatWasThereAtTheStart) {
  std::string error;
  auto plan = ReadPlan::make({{{"t", 0}, {0, 2}}, {{"t", 1}, {5, 5}}, {{"t", 2}, {0, 1}}},
                             span("start"), true, error);
  ASSERT_TRUE(plan) << error;
  EXPECT_EQ(plan->starts().size(), 2U) << "nothing is to be read of the empty partition";
  EXPECT_TRUE(plan->take(record(0, 0)));
  EXPECT_TRUE(plan->take(record(2, 0)));
  EXPECT_FALSE(plan->done());
  EXPECT_TRUE(plan->take(record(0, 1)));
  EXPECT_TRUE(plan->done());
  EXPECT_FALSE(plan->take(record(0, 2))) << "written since";
  EXPECT_TRUE(plan->done());
}

TEST(ReadPlan, AllEmptyIsDoneAtOnce) {
  std::string error;
  const auto plan = ReadPlan::make({{{"t", 0}, {7, 7}}}, span("start"), true, error);
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan->done());
  EXPECT_TRUE(plan->nothing_there());
}

TEST(ReadPlan, WithoutAnEndItIsNeverDone) {
  std::string error;
  auto plan = ReadPlan::make({{{"t", 0}, {0, 1}}}, span("start"), false, error);
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan->take(record(0, 0)));
  EXPECT_FALSE(plan->done());
}

TEST(ReadPlan, FromTheStartOnNobodyHasToBeAsked) {
  auto plan = ReadPlan::from_start({{"t", 0}, {"t", 1}});
  ASSERT_EQ(plan.starts().size(), 2U);
  EXPECT_EQ(plan.starts().begin()->second.kind, Start::earliest);
  EXPECT_TRUE(plan.nothing_there());
  EXPECT_TRUE(plan.take(record(1, 70)));
  EXPECT_FALSE(plan.done());
}

TEST(ReadPlan, AnEndInTheSpanIsExclusive) {
  std::string error;
  auto plan = ReadPlan::make({{{"t", 0}, {0, 100}}}, span("10:12"), false, error);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->starts().begin()->second.offset, 10);
  EXPECT_TRUE(plan->take(record(0, 10)));
  EXPECT_TRUE(plan->take(record(0, 11)));
  EXPECT_TRUE(plan->done());
  EXPECT_FALSE(plan->take(record(0, 12)));
}

TEST(ReadPlan, PositionsCountWhereOffsetsHoldNoRecords) {
  std::string error;
  auto plan = ReadPlan::make({{{"t", 0}, {0, 10}}}, span("start"), true, error);
  ASSERT_TRUE(plan);
  plan->advance({{{"t", 0}, 10}});
  EXPECT_TRUE(plan->done());
}

TEST(ReadPlan, TimesAreWhereTheBrokerFoundThem) {
  std::string error;
  ReadPlan::AtTimes times;
  times.start[{"t", 0}].offset = 7;
  times.end[{"t", 0}].offset = 9;
  auto plan = ReadPlan::make({{{"t", 0}, {5, 20}}}, span("@1:@2"), false, error, times);
  ASSERT_TRUE(plan) << error;
  EXPECT_EQ(plan->starts().begin()->second.offset, 7);
  EXPECT_TRUE(plan->take(record(0, 8)));
  EXPECT_TRUE(plan->done());
}

TEST(ReadPlan, AWrittenOffsetOutsideTheRangeIsRefusedByName) {
  std::string error;
  EXPECT_FALSE(ReadPlan::make({{{"t", 3}, {10, 20}}}, span("5"), true, error));
  EXPECT_EQ(error, "t partition 3 has offsets 10 to 20 (exclusive), not 5");
  EXPECT_FALSE(ReadPlan::make({{{"t", 3}, {10, 20}}}, span("21"), true, error));
  EXPECT_TRUE(ReadPlan::make({{{"t", 3}, {10, 20}}}, span("20"), true, error));
}

}  // namespace
}  // namespace mq::mqctl
