// What a peer of any make could send: every rule of PROTOCOL.md that a header can break.
#include <gtest/gtest.h>

#include <fstream>

#include "message_samples.h"
#include "protocol/frame.h"
#include "wire_writer.h"

namespace mq::protocol {
namespace {

using testing::WireWriter;

const std::string kTopic(16, '\x07');

std::string partition(std::string_view topic, std::uint64_t number) {
  return WireWriter().bytes(1, topic).number(2, number).text();
}
std::string produce_with(std::string_view entry) {
  return WireWriter().number(16, 2).bytes(17, entry).text();
}
bool produce_accepts(const std::string& header) {
  const auto decoded = decode_produce_request(base::as_bytes(header));
  if (!decoded) {
    EXPECT_EQ(decoded.error(), base::BaseErrc::malformed);
  }
  return decoded.has_value();
}
bool fetch_accepts(const std::string& entry) {
  return decode_fetch_request(base::as_bytes(WireWriter().bytes(19, entry).text())).has_value();
}

std::uint64_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  std::uint64_t total = 0;
  std::uint64_t resident = 0;
  in >> total >> resident;
  return resident * 4096;
}

TEST(HostileHeaders, HandMadeEntryIsAccepted) {
  EXPECT_TRUE(produce_accepts(
      produce_with(WireWriter().bytes(1, partition(kTopic, 3)).number(2, 100).text())));
}

TEST(HostileHeaders, UuidHasExactly16Bytes) {
  for (const std::size_t bytes : {0u, 1u, 15u, 17u, 32u, 1000u})
    EXPECT_FALSE(produce_accepts(produce_with(
        WireWriter().bytes(1, partition(std::string(bytes, 'u'), 3)).number(2, 100).text())))
        << bytes;
  EXPECT_FALSE(produce_accepts(produce_with("")));
}

TEST(HostileHeaders, NumbersOutsideTheirRangeAreRefusedNotCutOff) {
  for (const std::uint64_t number : {std::uint64_t{1} << 31, std::uint64_t{1} << 32,
                                     (std::uint64_t{1} << 32) + 3, ~std::uint64_t{0}})
    EXPECT_FALSE(produce_accepts(
        produce_with(WireWriter().bytes(1, partition(kTopic, number)).number(2, 100).text())));
  for (const std::uint64_t bytes : {std::uint64_t{1} << 32, ~std::uint64_t{0}})
    EXPECT_FALSE(produce_accepts(
        produce_with(WireWriter().bytes(1, partition(kTopic, 3)).number(2, bytes).text())));
  EXPECT_FALSE(fetch_accepts(
      WireWriter().bytes(1, partition(kTopic, 3)).number(2, std::uint64_t{1} << 63).text()));
}

TEST(HostileHeaders, UnknownEnumerationValuesAreRefused) {
  EXPECT_FALSE(produce_accepts(WireWriter().number(16, 3).text()));
  EXPECT_FALSE(produce_accepts(WireWriter().number(16, std::uint64_t{1} << 32).text()));
  const auto point = [](const WireWriter& entry) {
    return decode_list_offsets_request(base::as_bytes(WireWriter().bytes(16, entry.text()).text()))
        .has_value();
  };
  EXPECT_TRUE(point(WireWriter().bytes(1, partition(kTopic, 3)).number(2, 2)));
  EXPECT_FALSE(point(WireWriter().bytes(1, partition(kTopic, 3)).number(2, 3)));
  // A time goes with at_time only and lies behind 1970; 10 is 5 and 9 is -5 as zigzag.
  EXPECT_TRUE(point(WireWriter().bytes(1, partition(kTopic, 3)).number(2, 2).number(3, 10)));
  EXPECT_FALSE(point(WireWriter().bytes(1, partition(kTopic, 3)).number(2, 2).number(3, 9)));
  EXPECT_FALSE(point(WireWriter().bytes(1, partition(kTopic, 3)).number(2, 1).number(3, 10)));
}

TEST(HostileHeaders, SignedFieldsBelowMinusOneAreRefused) {
  const auto create = [](std::int64_t partitions) {
    const std::string topic = WireWriter().bytes(1, "orders").signed_number(2, partitions).text();
    return decode_create_topics_request(base::as_bytes(WireWriter().bytes(16, topic).text()))
        .has_value();
  };
  EXPECT_TRUE(create(-1));
  EXPECT_FALSE(create(-2));
  EXPECT_FALSE(create(std::numeric_limits<std::int64_t>::min()));
  EXPECT_FALSE(create(std::int64_t{1} << 31));
}

TEST(HostileHeaders, TextIsUtf8OfBoundedLength) {
  const auto hello = [](std::uint32_t field, std::string_view text) {
    return decode_hello_request(base::as_bytes(WireWriter().bytes(field, text).text())).has_value();
  };
  EXPECT_TRUE(hello(3,
                    "b\xc3\xbc"
                    "cher"));
  EXPECT_FALSE(hello(3, "\xff"));
  EXPECT_FALSE(hello(3, "\xc0\x80"));
  EXPECT_FALSE(hello(3, std::string(129, 'n')));
  EXPECT_FALSE(hello(2, std::string(65, 't')));
  EXPECT_FALSE(hello(16, std::string(129, 'v')));
}

TEST(HostileHeaders, PositionsOfFollowersArePlacesInALogAndBounded) {
  const auto accepts = [](const std::string& header) {
    return decode_replica_fetch_request(base::as_bytes(header)).has_value();
  };
  const auto position = [](std::int64_t appended, std::int64_t durable) {
    return WireWriter()
        .bytes(1, partition(kTopic, 3))
        .number(2, 1)
        .signed_number(3, appended)
        .signed_number(4, durable)
        .text();
  };
  EXPECT_TRUE(accepts(WireWriter().bytes(21, position(7, 5)).text()));
  EXPECT_FALSE(accepts(WireWriter().bytes(21, position(-1, 5)).text()));
  EXPECT_FALSE(accepts(WireWriter().bytes(21, position(7, -1)).text()));
  std::string most;
  for (std::size_t i = 0; i < kReplicaFetchEntriesMax; ++i)
    most += WireWriter().bytes(21, position(0, 0)).text();
  EXPECT_TRUE(accepts(most));
  EXPECT_FALSE(accepts(most + WireWriter().bytes(21, position(0, 0)).text()));
}

TEST(HostileHeaders, ReportsAreBoundedAndOfKnownStates) {
  const auto accepts = [](const std::string& header) {
    return decode_report_replicas_request(base::as_bytes(header)).has_value();
  };
  const auto replica = [](std::uint64_t state) {
    return WireWriter().bytes(1, partition(kTopic, 3)).number(2, state).text();
  };
  EXPECT_TRUE(accepts(WireWriter().bytes(18, replica(3)).text()));
  EXPECT_FALSE(accepts(WireWriter().bytes(18, replica(4)).text()));
  std::string most;
  std::string deleted;
  for (std::size_t i = 0; i < kReportsMax; ++i) {
    most += WireWriter().bytes(18, replica(0)).text();
    deleted += WireWriter().bytes(19, kTopic).text();
  }
  EXPECT_TRUE(accepts(most + deleted));
  EXPECT_FALSE(accepts(most + WireWriter().bytes(18, replica(0)).text()));
  EXPECT_FALSE(accepts(deleted + WireWriter().bytes(19, kTopic).text()));
}

TEST(HostileHeaders, PartitionsOfAnImageRise) {
  const auto accepts = [](std::uint64_t first, std::uint64_t second) {
    const auto one = [](std::uint64_t number) {
      return WireWriter().signed_number(1, static_cast<std::int64_t>(number)).text();
    };
    const std::string topic =
        WireWriter().bytes(2, kTopic).bytes(4, one(first)).bytes(4, one(second)).text();
    return decode_pull_image_response(
               base::as_bytes(WireWriter().bytes(1, "").bytes(21, topic).text()))
        .has_value();
  };
  EXPECT_TRUE(accepts(1, 2));
  EXPECT_FALSE(accepts(2, 2));
  EXPECT_FALSE(accepts(3, 2));
}

TEST(HostileHeaders, EachMemberOfAnIsrHasAnEpochOrNoneHas) {
  const auto accepts = [](int brokers, int epochs) {
    WireWriter one;
    one.signed_number(1, 0);
    for (int i = 0; i < brokers; ++i) one.signed_number(6, i);
    for (int i = 0; i < epochs; ++i) one.signed_number(7, i);
    const std::string topic = WireWriter().bytes(2, kTopic).bytes(4, one.text()).text();
    return decode_pull_image_response(
               base::as_bytes(WireWriter().bytes(1, "").bytes(21, topic).text()))
        .has_value();
  };
  EXPECT_TRUE(accepts(3, 3));
  EXPECT_TRUE(accepts(3, 0));
  EXPECT_FALSE(accepts(3, 2));
  EXPECT_FALSE(accepts(2, 3));
  EXPECT_FALSE(accepts(0, 1));
  EXPECT_TRUE(accepts(128, 128));
  EXPECT_FALSE(accepts(129, 129));
}

TEST(HostileHeaders, IsrProposalsAreBounded) {
  const auto accepts = [](std::size_t entries, std::size_t members) {
    WireWriter entry;
    entry.bytes(1, partition(kTopic, 3));
    for (std::size_t i = 0; i < members; ++i)
      entry.bytes(4, WireWriter().signed_number(1, 1).text());
    std::string header;
    for (std::size_t i = 0; i < entries; ++i) header += WireWriter().bytes(18, entry.text()).text();
    return decode_alter_isr_request(base::as_bytes(header)).has_value();
  };
  EXPECT_TRUE(accepts(1, 0));
  EXPECT_TRUE(accepts(kIsrProposalsMax, 3));
  EXPECT_FALSE(accepts(kIsrProposalsMax + 1, 1));
  EXPECT_TRUE(accepts(1, 128));
  EXPECT_FALSE(accepts(1, 129));
}

TEST(HostileHeaders, SettingGivenTwiceIsRefused) {
  const std::string setting = WireWriter().bytes(1, "durability").bytes(2, "disk").text();
  const std::string topic =
      WireWriter().bytes(1, "orders").bytes(5, setting).bytes(5, setting).text();
  EXPECT_FALSE(decode_create_topics_request(base::as_bytes(WireWriter().bytes(16, topic).text())));
}

TEST(HostileHeaders, ClaimedLengthsBeyondTheHeaderAreRefused) {
  for (const std::uint64_t length :
       {std::uint64_t{1}, std::uint64_t{0x7fffffff}, std::uint64_t{0x80000000},
        std::uint64_t{0xffffffff}, ~std::uint64_t{0}}) {
    EXPECT_FALSE(produce_accepts(WireWriter().length(17, length).text())) << length;
    EXPECT_FALSE(produce_accepts(produce_with(WireWriter().length(1, length).text()))) << length;
  }
}

TEST(HostileHeaders, GroupsAndFieldZeroAreRefused) {
  EXPECT_FALSE(produce_accepts(WireWriter().tag(20, 3).tag(20, 4).text()));
  EXPECT_FALSE(produce_accepts(WireWriter().tag(20, 4).text()));
  EXPECT_FALSE(produce_accepts(WireWriter().tag(20, 6).text()));
  EXPECT_FALSE(produce_accepts(WireWriter().tag(20, 7).text()));
  EXPECT_FALSE(produce_accepts(WireWriter().tag(0, 0).text()));
}

TEST(HostileHeaders, TenThousandDeepNestingIsRefused) {
  std::string groups;
  for (int i = 0; i < 10'000; ++i) groups += WireWriter().tag(2, 3).text();
  for (int i = 0; i < 10'000; ++i) groups += WireWriter().tag(2, 4).text();
  // Inside a known submessage, where the top-level count does not look.
  EXPECT_FALSE(produce_accepts(produce_with(groups)));
  EXPECT_FALSE(produce_accepts(groups));
}

TEST(HostileHeaders, HalfAMillionEntriesAreRefusedBeforeTheyAreBuilt) {
  // PRO-1: a header of the largest size full of empty entries.
  std::string header;
  const std::string entry = WireWriter().bytes(17, "").text();
  while (header.size() + entry.size() <= kHeaderBytesMax) header += entry;
  const std::uint64_t before = resident_bytes();
  EXPECT_FALSE(produce_accepts(header));
  EXPECT_LE(resident_bytes(), before + (std::uint64_t{4} << 20));
}

TEST(HostileHeaders, UnknownFieldsAreCountedToo) {
  std::string header;
  for (int i = 0; i < 100'000; ++i) header += WireWriter().bytes(900, "").text();
  EXPECT_FALSE(produce_accepts(header));
}

TEST(HostileHeaders, TenThousandPartitionsFitOneFetch) {
  FetchRequest request;
  for (std::int32_t i = 0; i < 10'000; ++i)
    request.entries.push_back({testing::sample_partition(i), model::Offset(i), 1 << 20});
  const std::string header = encode(request);
  EXPECT_LT(header.size(), kHeaderBytesMax);
  EXPECT_EQ(*decode_fetch_request(base::as_bytes(header)), request);
}

TEST(HostileHeaders, PartitionsOfATopicRise) {
  MetadataResponse response;
  response.topics.push_back({{}, "orders", testing::sample_uuid(1), 1, {{.partition = 1}}});
  EXPECT_TRUE(decode_metadata_response(base::as_bytes(encode(response))));
  response.topics[0].partitions.push_back({.partition = 1});
  EXPECT_FALSE(decode_metadata_response(base::as_bytes(encode(response))));
}

TEST(HostileHeaders, PortIsOneOfTcp) {
  MetadataResponse response;
  response.brokers.push_back({1, "host", 65'536});
  EXPECT_FALSE(decode_metadata_response(base::as_bytes(encode(response))));
}

TEST(HostileHeaders, OwnTextIsMadeSendable) {
  // A topic name from a command line can hold any bytes; the request must still be readable.
  MetadataRequest request;
  request.topics = {"good",
                    "b\xff"
                    "d",
                    std::string(2000, 'x')};
  const auto received = decode_metadata_request(base::as_bytes(encode(request)));
  ASSERT_TRUE(received);
  EXPECT_EQ(received->topics[1], "b?d");
  EXPECT_EQ(received->topics[2].size(), 1024u);
}

}  // namespace
}  // namespace mq::protocol
