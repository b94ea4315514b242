#include <gtest/gtest.h>

#include "message_samples.h"

namespace mq::protocol {
namespace {

template <class Message>
class Messages : public ::testing::Test {};

template <class Tuple>
struct AsTypes;
template <class... Types>
struct AsTypes<std::tuple<Types...>> {
  using type = ::testing::Types<Types...>;
};
using AllMessages = AsTypes<decltype(std::tuple_cat(std::declval<testing::Requests>(),
                                                    std::declval<testing::Responses>()))>::type;
TYPED_TEST_SUITE(Messages, AllMessages);

TYPED_TEST(Messages, EveryFieldComesBack) {
  const auto sent = testing::sample<TypeParam>();
  const auto received = testing::decode_as<TypeParam>(base::as_bytes(encode(sent)));
  ASSERT_TRUE(received);
  EXPECT_EQ(*received, sent);
}

TYPED_TEST(Messages, DefaultsComeBack) {
  const auto received = testing::decode_as<TypeParam>(base::as_bytes(encode(TypeParam{})));
  ASSERT_TRUE(received);
  EXPECT_EQ(*received, TypeParam{});
}

TYPED_TEST(Messages, EveryCutIsRefusedOrAShorterMessage) {
  const std::string header = encode(testing::sample<TypeParam>());
  for (std::size_t bytes = 0; bytes < header.size(); ++bytes) {
    const auto received = testing::decode_as<TypeParam>(base::as_bytes(header).first(bytes));
    // Protobuf messages have no end mark; the frame's checksum covers that. A cut never crashes.
    if (received) {
      EXPECT_NE(*received, testing::sample<TypeParam>());
    } else {
      EXPECT_EQ(received.error(), base::BaseErrc::malformed);
    }
  }
}

TYPED_TEST(Messages, EveryByteValueIsSurvived) {
  std::string header = encode(testing::sample<TypeParam>());
  for (char& byte : header) {
    const char right = byte;
    for (int value = 0; value < 256; ++value) {
      byte = static_cast<char>(value);
      (void)testing::decode_as<TypeParam>(base::as_bytes(header)).has_value();
    }
    byte = right;
  }
}

TYPED_TEST(Messages, UnknownFieldsOfANewerPeerAreIgnored) {
  const auto sent = testing::sample<TypeParam>();
  std::string header = encode(sent);
  header += std::string("\xf8\x3f\x2a", 3);  // field 1023, a number
  header += std::string(
      "\xfa\x3f\x03"
      "abc",
      6);  // field 1023, bytes
  const auto received = testing::decode_as<TypeParam>(base::as_bytes(header));
  ASSERT_TRUE(received);
  EXPECT_EQ(*received, sent);
}

template <class Message>
class ResponseMessages : public ::testing::Test {};
TYPED_TEST_SUITE(ResponseMessages, AsTypes<testing::Responses>::type);

TYPED_TEST(ResponseMessages, EnvelopeReadsWithoutKnowingTheApi) {
  const auto envelope = decode_envelope(base::as_bytes(encode(testing::sample<TypeParam>())));
  ASSERT_TRUE(envelope);
  EXPECT_EQ(*envelope, testing::sample_response_envelope());
}

TYPED_TEST(ResponseMessages, BareEnvelopeIsAnAnswerOfEveryApi) {
  const ResponseEnvelope refused = testing::sample_response_envelope();
  const auto received = testing::decode_as<TypeParam>(base::as_bytes(encode(refused)));
  ASSERT_TRUE(received);
  EXPECT_EQ(received->envelope, refused);
}

TYPED_TEST(ResponseMessages, AnswerWithoutStatusIsNone) {
  EXPECT_FALSE(testing::decode_as<TypeParam>({}));
  EXPECT_FALSE(decode_envelope({}));
}

}  // namespace
}  // namespace mq::protocol
