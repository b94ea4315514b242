#include "protocol/wire_error.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "protocol/api.h"
#include "protocol/status.h"

namespace mq::protocol {
namespace {

struct Row {
  std::int32_t number;
  std::string name;
  std::string flags;
  friend bool operator==(const Row&, const Row&) = default;
};

std::vector<Row> table() {
  return {
#define MQ_ERROR(number, NAME, enumerator, flags, sentence, advice) {number, #NAME, flags},
#include "mq/errors.def"
  };
}

/// Numbers and names as they were published; lines are added, never changed.
std::vector<Row> published() {
  std::ifstream in(MQ_PROTOCOL_TEST_DIR "/published_errors.txt");
  std::vector<Row> rows;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("#")) continue;
    std::istringstream words(line);
    Row row;
    words >> row.number >> row.name >> row.flags;
    rows.push_back(row);
  }
  return rows;
}

TEST(WireError, NumbersAndNamesAreAsPublished) {
  // PRO-4
  EXPECT_EQ(table(), published());
}

TEST(WireError, NamesAndNumbersAreUnique) {
  std::set<std::string> names;
  std::set<std::int32_t> numbers;
  for (const auto& row : table()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_TRUE(numbers.insert(row.number).second) << row.number;
    EXPECT_EQ(row.flags.find_first_not_of("RMFA"), std::string::npos) << row.name;
  }
}

TEST(WireError, IsFoundByNumberAndName) {
  const auto by_number = find_error(12);
  ASSERT_TRUE(by_number);
  EXPECT_EQ(by_number->name, "NOT_LEADER");
  EXPECT_TRUE(by_number->flags.retriable);
  EXPECT_TRUE(by_number->flags.refresh_metadata);
  EXPECT_FALSE(by_number->flags.fatal);
  EXPECT_EQ(find_error("NOT_LEADER")->code, WireError::not_leader);
  EXPECT_EQ(error_info(WireError::not_leader).name, "NOT_LEADER");
}

TEST(WireError, UnknownOnesAreNotFound) {
  EXPECT_FALSE(find_error(-1));
  EXPECT_FALSE(find_error(999));
  EXPECT_FALSE(find_error(std::numeric_limits<std::int32_t>::max()));
  EXPECT_FALSE(find_error("not_leader"));
}

TEST(WireError, StatusCarriesTheAdviceOfTheTable) {
  const Status status = Status::of(WireError::timed_out, "after 30 s", 4);
  EXPECT_EQ(status.code, 29);
  EXPECT_TRUE(status.advice.maybe_applied);
  EXPECT_EQ(status.broker, 4);
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(Status{}.ok());
}

TEST(Api, EverySupportedOneHasAName) {
  for (const auto& api : kSupportedApis)
    EXPECT_FALSE(api_name(static_cast<std::uint16_t>(api.key)).empty());
  EXPECT_TRUE(api_name(0).empty());
  EXPECT_TRUE(api_name(2).empty());
  EXPECT_TRUE(api_name(77).empty());
}

}  // namespace
}  // namespace mq::protocol
