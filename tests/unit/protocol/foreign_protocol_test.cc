#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "protocol/frame.h"

namespace mq::protocol {
namespace {

using namespace std::string_literals;

ForeignProtocol recognise_text(std::string_view bytes) { return recognise(base::as_bytes(bytes)); }

const std::string kTlsHello = "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"s;
// ApiVersions version 3 with correlation id 1, as librdkafka and the Java client send it first.
const std::string kKafka = "\x00\x00\x00\x2a\x00\x12\x00\x03\x00\x00\x00\x01\x00\x07rd"s;

TEST(ForeignProtocol, MqIsMq) { EXPECT_EQ(recognise_text("MQP1"), ForeignProtocol::mq); }

TEST(ForeignProtocol, OthersAreNamed) {
  EXPECT_EQ(recognise_text(kTlsHello), ForeignProtocol::tls);
  EXPECT_EQ(recognise_text(kKafka), ForeignProtocol::kafka);
  EXPECT_EQ(recognise_text("GET / HTTP/1.1\r\n"), ForeignProtocol::http);
  EXPECT_EQ(recognise_text("POST /v1/x"), ForeignProtocol::http);
  EXPECT_EQ(recognise_text("OPTIONS * H"), ForeignProtocol::http);
  EXPECT_EQ(recognise_text("PRI * HTTP/2.0\r\n"), ForeignProtocol::http);
}

TEST(ForeignProtocol, ServersReachedByMistakeAreNamed) {
  EXPECT_EQ(recognise_text("HTTP/1.1 400 Bad"), ForeignProtocol::http);
  EXPECT_EQ(recognise_text("\x15\x03\x03\x00\x02\x02\x28"s), ForeignProtocol::tls);
}

TEST(ForeignProtocol, AnythingElseIsUnknown) {
  for (const auto& bytes : {"SSH-2.0-OpenSSH"s, "MQP2"s, "MQX"s, "\xff"s, "get /"s, "*1\r\n$4"s,
                            "\x16\x04\x01"s, "\0\0\0\0\0\0\0\0"s, "\0\0\0\x2a\x33\x12\0\3"s})
    EXPECT_EQ(recognise_text(bytes), ForeignProtocol::unknown) << bytes;
}

TEST(ForeignProtocol, EveryPrefixWaitsOrAgrees) {
  for (const auto& whole : {"MQP1"s, kTlsHello, kKafka, "GET / HTTP/1.1"s, "DELETE /x"s}) {
    const auto decided = recognise_text(whole);
    for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
      const auto early = recognise_text(std::string_view(whole).substr(0, bytes));
      EXPECT_TRUE(early == decided || early == ForeignProtocol::none_yet) << whole << bytes;
    }
  }
}

TEST(ForeignProtocol, EightBytesAlwaysDecide) {
  for (int first = 0; first < 256; ++first) {
    const std::string bytes(8, static_cast<char>(first));
    EXPECT_NE(recognise_text(bytes), ForeignProtocol::none_yet);
  }
}

TEST(ForeignProtocol, AnswersAreWhatTheOtherSideReads) {
  EXPECT_THAT(foreign_protocol_answer(ForeignProtocol::http),
              ::testing::StartsWith("HTTP/1.1 400 Bad Request\r\n"));
  EXPECT_EQ(foreign_protocol_answer(ForeignProtocol::tls), "\x15\x03\x01\x00\x02\x02\x28"s);
  EXPECT_EQ(foreign_protocol_answer(ForeignProtocol::kafka), "");
  EXPECT_EQ(foreign_protocol_answer(ForeignProtocol::unknown), "");
}

TEST(ForeignProtocol, HttpAnswerHasItsLength) {
  const std::string answer = foreign_protocol_answer(ForeignProtocol::http);
  const auto body = answer.find("\r\n\r\n") + 4;
  EXPECT_THAT(answer,
              ::testing::HasSubstr(fmt::format("Content-Length: {}\r\n", answer.size() - body)));
}

}  // namespace
}  // namespace mq::protocol
