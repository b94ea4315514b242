#include "protocol/topics_codec.h"

namespace mq::protocol::codec {

bool read_topic_result(const wire::TopicResult& from, TopicResult& to) {
  return read_text(from.name(), to.name, kNameBytesMax) && read_entry_status(from, to.status) &&
         read_optional_uuid(from.id(), to.id) && read_integer(from.partitions(), to.partitions);
}

void write_topic_result(const TopicResult& from, wire::TopicResult& to) {
  to.set_name(sendable_text(from.name, kNameBytesMax));
  write_entry_status(from.status, to);
  to.set_id(optional_uuid(from.id));
  to.set_partitions(static_cast<std::uint64_t>(from.partitions));
}

}  // namespace mq::protocol::codec
