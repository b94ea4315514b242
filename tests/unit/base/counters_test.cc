#include "base/counters.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/log.h"

namespace mq::base {
namespace {

TEST(Counters, OneNameIsOneNumber) {
  Counters counters;
  Counter& requests = counters.get("requests_total");
  requests.add();
  requests.add(4);
  counters.get("connections_open").set(7);
  EXPECT_EQ(&counters.get("requests_total"), &requests);
  const auto values = counters.snapshot();
  EXPECT_EQ(values.size(), 2u);
  EXPECT_EQ(values.at("requests_total"), 5);
  EXPECT_EQ(values.at("connections_open"), 7);
}

TEST(Counters, ABrokenInvariantIsCountedAndLogged) {
  std::string logged;
  set_log_sink([&logged](LogLevel level, std::string_view, std::string_view text) {
    EXPECT_EQ(level, LogLevel::error);
    logged = text;
  });
  Counters counters;
  EXPECT_TRUE(counters.invariant(true, "LOG-1", "fine"));
  EXPECT_TRUE(counters.snapshot().empty());
  EXPECT_FALSE(counters.invariant(false, "LOG-1", "offset 7 twice"));
  set_log_sink({});
  ASSERT_EQ(counters.snapshot().size(), 1u);
  EXPECT_EQ(counters.snapshot().begin()->second, 1);
  EXPECT_NE(counters.snapshot().begin()->first.find("LOG-1"), std::string::npos);
  EXPECT_NE(logged.find("offset 7 twice"), std::string::npos);
}

TEST(Counters, ManyThreadsMayCount) {
  Counters counters;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&counters] {
      for (int i = 0; i < 10'000; ++i) counters.get("n").add();
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(counters.get("n").value(), 40'000);
}

}  // namespace
}  // namespace mq::base
