#pragma once

#include <array>
#include <string>
#include <tuple>
#include <utility>

#include "fuzz/fuzz_input.h"
#include "unit/protocol/message_samples.h"

namespace mq::fuzz {

/// What decodes also encodes, and to the same message.
template <class Message>
void check_message(base::Bytes header) {
  const auto message = protocol::testing::decode_as<Message>(header);
  if (!message) {
    MQ_CHECK(message.error() == base::BaseErrc::malformed);
    return;
  }
  const std::string encoded = encode(*message);
  const auto again = protocol::testing::decode_as<Message>(base::as_bytes(encoded));
  MQ_CHECK(again && *again == *message);
}

/// The first byte chooses one of the messages.
template <class Messages>
void check_one_of(Input input) {
  const auto choice = input.number<std::uint8_t>() % std::tuple_size_v<Messages>;
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    ((I == choice ? check_message<std::tuple_element_t<I, Messages>>(input.rest()) : void()), ...);
  }
  (std::make_index_sequence<std::tuple_size_v<Messages>>());
}

}  // namespace mq::fuzz
