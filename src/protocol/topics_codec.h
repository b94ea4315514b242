#pragma once

#include "protocol/codec.h"
#include "protocol/proto/topics.pb.h"
#include "protocol/topics.h"

/// What the codecs of changes to topics share. Included by .cc files of this folder only.
namespace mq::protocol::codec {

[[nodiscard]] bool read_topic_result(const wire::TopicResult& from, TopicResult& to);
void write_topic_result(const TopicResult& from, wire::TopicResult& to);

/// The responses of all changes have one shape.
template <class Message, class Struct>
bool read_results(const Message& from, Struct& to) {
  return read_envelope(from, to.envelope) &&
         read_all(from.results(), to.results, read_topic_result);
}
template <class Struct, class Message>
void write_results(const Struct& from, Message& to) {
  write_envelope(from.envelope, to);
  write_all(from.results, *to.mutable_results(), write_topic_result);
}

}  // namespace mq::protocol::codec
