#include "replication/client_order.h"

#include <gtest/gtest.h>

namespace mq::replication {
namespace {

Error offer(ClientOrder& order, std::uint64_t client, std::uint64_t connection,
            std::uint64_t sequence) {
  const BatchOrigin origin{client, connection, sequence};
  const Error refused = order.check(origin);
  if (!refused) order.appended(origin);
  return refused;
}

const Error kOutOfOrder = make_error_code(ReplicationErrc::out_of_order);
const Error kStale = make_error_code(ReplicationErrc::stale_connection);

// PAR-5
TEST(ClientOrder, TakesNumbersOneAfterTheOther) {
  ClientOrder order;
  EXPECT_EQ(offer(order, 1, 1, 0), Error());
  EXPECT_EQ(offer(order, 1, 1, 1), Error());
  EXPECT_EQ(offer(order, 1, 1, 2), Error());
}

TEST(ClientOrder, RefusesAGapAndWhatFollowsIt) {
  ClientOrder order;
  EXPECT_EQ(offer(order, 1, 1, 0), Error());
  EXPECT_EQ(offer(order, 1, 1, 2), kOutOfOrder);
  EXPECT_EQ(offer(order, 1, 1, 3), kOutOfOrder);
  EXPECT_EQ(offer(order, 1, 1, 1), Error());
}

TEST(ClientOrder, RefusesARepeat) {
  ClientOrder order;
  EXPECT_EQ(offer(order, 1, 1, 0), Error());
  EXPECT_EQ(offer(order, 1, 1, 1), Error());
  EXPECT_EQ(offer(order, 1, 1, 1), kOutOfOrder);
}

TEST(ClientOrder, ZeroStartsAnew) {
  ClientOrder order;
  EXPECT_EQ(offer(order, 1, 1, 0), Error());
  EXPECT_EQ(offer(order, 1, 1, 1), Error());
  EXPECT_EQ(offer(order, 1, 1, 0), Error());
  EXPECT_EQ(offer(order, 1, 1, 2), kOutOfOrder);
  EXPECT_EQ(offer(order, 1, 1, 1), Error());
}

TEST(ClientOrder, ANewClientStartsAtZero) {
  ClientOrder order;
  EXPECT_EQ(offer(order, 1, 1, 3), kOutOfOrder);
  EXPECT_EQ(offer(order, 1, 1, 0), Error());
}

TEST(ClientOrder, ANewerConnectionTakesOverOnlyOnceItHasAppended) {
  ClientOrder order;
  EXPECT_EQ(offer(order, 1, 1, 0), Error());
  EXPECT_EQ(offer(order, 1, 2, 1), kOutOfOrder);  // not applied, so it takes nothing over
  EXPECT_EQ(offer(order, 1, 1, 1), Error());
  EXPECT_EQ(offer(order, 1, 2, 0), Error());
  EXPECT_EQ(offer(order, 1, 1, 2), kStale);
  EXPECT_EQ(offer(order, 1, 1, 0), kStale);
  EXPECT_EQ(offer(order, 1, 2, 1), Error());
}

TEST(ClientOrder, ClientsDoNotDisturbEachOther) {
  ClientOrder order;
  EXPECT_EQ(offer(order, 1, 7, 0), Error());
  EXPECT_EQ(offer(order, 2, 1, 0), Error());
  EXPECT_EQ(offer(order, 1, 7, 1), Error());
  EXPECT_EQ(offer(order, 2, 1, 1), Error());
}

TEST(ClientOrder, ForgetsTheClientThatWasSilentLongest) {
  ClientOrder order(2);
  EXPECT_EQ(offer(order, 1, 1, 0), Error());
  EXPECT_EQ(offer(order, 2, 1, 0), Error());
  EXPECT_EQ(offer(order, 1, 1, 1), Error());
  EXPECT_EQ(offer(order, 3, 1, 0), Error());  // client 2 is forgotten
  EXPECT_EQ(order.clients(), 2U);
  EXPECT_EQ(offer(order, 2, 1, 1), kOutOfOrder);
  EXPECT_EQ(offer(order, 1, 1, 2), Error());
}

}  // namespace
}  // namespace mq::replication
