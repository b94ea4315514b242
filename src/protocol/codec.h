#pragma once

#include <google/protobuf/arena.h>
#include <google/protobuf/message_lite.h>
#include <google/protobuf/repeated_field.h>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/uuid.h"
#include "model/ids.h"
#include "model/isr.h"
#include "protocol/proto/common.pb.h"
#include "protocol/status.h"

/// What the codec files share. Included by .cc files of this folder only: it knows Protobuf.
///
/// A reader returns false as soon as a field breaks a rule; the message is then refused as a whole.
namespace mq::protocol::codec {

/// How deep messages may be nested, known to us or not.
inline constexpr int kNestingMax = 16;
/// Entries of one repeated field, and length-delimited fields of one header at its top level.
inline constexpr std::size_t kEntriesMax = 16'384;
inline constexpr std::size_t kTraceParentBytesMax = 64;
inline constexpr std::size_t kClientNameBytesMax = 128;
/// Names (topics, settings, hosts). Longer than any valid one, so that a wrong name gets its own
/// error.
inline constexpr std::size_t kNameBytesMax = 1024;
inline constexpr std::size_t kRackBytesMax = 128;
inline constexpr std::size_t kTextBytesMax = 65'536;
inline constexpr std::size_t kReplicasMax = 128;

/// Parses a header under the limits above. Counts the fields before anything is built from them, so
/// that a header of 1 MiB cannot ask for half a million objects.
[[nodiscard]] bool parse(base::Bytes header, google::protobuf::MessageLite& message);

/// Memory for one message, on the stack for all but the largest.
class Scratch {
 public:
  Scratch() : arena_(block_.data(), block_.size()) {}
  template <class Message>
  Message& make() {
    return *google::protobuf::Arena::CreateMessage<Message>(&arena_);
  }

 private:
  alignas(std::max_align_t) std::array<char, 2048> block_;
  google::protobuf::Arena arena_;
};

template <class Message, class Struct>
base::Result<Struct> decode(base::Bytes header, bool (*read)(const Message&, Struct&)) {
  Scratch scratch;
  auto& message = scratch.make<Message>();
  if (!parse(header, message)) return base::BaseErrc::malformed;
  Struct out;
  if (!read(message, out)) return base::BaseErrc::malformed;
  return out;
}

template <class Message, class Struct>
std::string encode(const Struct& in, void (*write)(const Struct&, Message&)) {
  Scratch scratch;
  auto& message = scratch.make<Message>();
  write(in, message);
  return message.SerializeAsString();
}

/// Takes over `value` if the narrower type holds it, and is at least `min`.
template <std::integral To, std::integral From>
[[nodiscard]] bool read_integer(From value, To& to,
                                To min = std::is_signed_v<To> ? To(-1) : To(0)) noexcept {
  if (!std::in_range<To>(value) || static_cast<To>(value) < min) return false;
  to = static_cast<To>(value);
  return true;
}
template <class Tag, class Rep>
[[nodiscard]] bool read_id(std::int64_t value, model::StrongInt<Tag, Rep>& to) noexcept {
  Rep number{};
  if (!read_integer(value, number)) return false;
  to = model::StrongInt<Tag, Rep>(number);
  return true;
}

/// Above none, a number from 0 on, one higher: the default of the field is -1.
template <class Integer>
bool read_plus_one(std::uint64_t from, Integer& to) noexcept {
  return from == 0 || read_integer(from - 1, to);
}
template <class Integer>
std::uint64_t plus_one(Integer from) noexcept {
  return static_cast<std::uint64_t>(std::int64_t{from} + 1);
}

/// UTF-8 of at most `bytes_max` bytes.
[[nodiscard]] bool read_text(const std::string& from, std::string& to, std::size_t bytes_max);
/// What read_text() on the other side will take: invalid bytes become '?', the rest is cut off.
[[nodiscard]] std::string sendable_text(std::string_view text, std::size_t bytes_max);

/// Exactly 16 bytes.
[[nodiscard]] bool read_uuid(const std::string& from, base::Uuid& to);
/// Exactly 16 bytes, or none for "not known".
[[nodiscard]] bool read_optional_uuid(const std::string& from, base::Uuid& to);
[[nodiscard]] std::string optional_uuid(const base::Uuid& id);

[[nodiscard]] bool read_partition(const wire::Partition& from, model::PartitionId& to);
void write_partition(const model::PartitionId& from, wire::Partition& to);

[[nodiscard]] bool read_status(const wire::Status& from, Status& to);
void write_status(const Status& from, wire::Status& to);
/// An absent status is OK.
template <class Message>
[[nodiscard]] bool read_entry_status(const Message& from, Status& to) {
  return !from.has_status() || read_status(from.status(), to);
}
template <class Message>
void write_entry_status(const Status& from, Message& to) {
  if (from != Status{}) write_status(from, *to.mutable_status());
}

template <class Message>
[[nodiscard]] bool read_envelope(const Message& from, RequestEnvelope& to) {
  return read_integer(from.deadline_ms(), to.deadline_ms) &&
         read_text(from.trace_parent(), to.trace_parent, kTraceParentBytesMax) &&
         read_text(from.client_name(), to.client_name, kClientNameBytesMax);
}
template <class Message>
void write_envelope(const RequestEnvelope& from, Message& to) {
  to.set_deadline_ms(from.deadline_ms);
  to.set_trace_parent(sendable_text(from.trace_parent, kTraceParentBytesMax));
  to.set_client_name(sendable_text(from.client_name, kClientNameBytesMax));
}
/// A response without a status is not one.
template <class Message>
[[nodiscard]] bool read_envelope(const Message& from, ResponseEnvelope& to) {
  to.metadata_version = from.metadata_version();
  return from.has_status() && read_status(from.status(), to.status) &&
         read_integer(from.throttle_ms(), to.throttle_ms);
}
template <class Message>
void write_envelope(const ResponseEnvelope& from, Message& to) {
  write_status(from.status, *to.mutable_status());
  to.set_throttle_ms(from.throttle_ms);
  to.set_metadata_version(from.metadata_version);
}

/// Reads every item of a repeated message field with `read`.
template <class Item, class Struct>
[[nodiscard]] bool read_all(const google::protobuf::RepeatedPtrField<Item>& from,
                            std::vector<Struct>& to, bool (*read)(const Item&, Struct&),
                            std::size_t items_max = kEntriesMax) {
  if (static_cast<std::size_t>(from.size()) > items_max) return false;
  to.resize(static_cast<std::size_t>(from.size()));
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (!read(from[static_cast<int>(i)], to[i])) return false;
  }
  return true;
}
template <class Item, class Struct>
void write_all(const std::vector<Struct>& from, google::protobuf::RepeatedPtrField<Item>& to,
               void (*write)(const Struct&, Item&)) {
  to.Reserve(static_cast<int>(from.size()));
  for (const Struct& item : from) write(item, *to.Add());
}

[[nodiscard]] bool read_names(const google::protobuf::RepeatedPtrField<std::string>& from,
                              std::vector<std::string>& to, std::size_t bytes_max = kNameBytesMax);
void write_names(const std::vector<std::string>& from,
                 google::protobuf::RepeatedPtrField<std::string>& to,
                 std::size_t bytes_max = kNameBytesMax);
[[nodiscard]] bool read_uuids(const google::protobuf::RepeatedPtrField<std::string>& from,
                              std::vector<base::Uuid>& to, std::size_t items_max = kEntriesMax);
void write_uuids(const std::vector<base::Uuid>& from,
                 google::protobuf::RepeatedPtrField<std::string>& to);
/// Broker ids.
[[nodiscard]] bool read_brokers(const google::protobuf::RepeatedField<std::int64_t>& from,
                                std::vector<std::int32_t>& to);
void write_brokers(const std::vector<std::int32_t>& from,
                   google::protobuf::RepeatedField<std::int64_t>& to);

/// Of an ISR.
[[nodiscard]] bool read_members(const google::protobuf::RepeatedPtrField<wire::IsrMember>& from,
                                std::vector<model::IsrMember>& to);
void write_members(const std::vector<model::IsrMember>& from,
                   google::protobuf::RepeatedPtrField<wire::IsrMember>& to);

}  // namespace mq::protocol::codec
