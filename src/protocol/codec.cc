#include "protocol/codec.h"

#include <google/protobuf/io/coded_stream.h>

#include "protocol/utf8.h"

namespace mq::protocol::codec {
namespace {

using google::protobuf::io::CodedInputStream;

enum WireType : std::uint32_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5 };

/// Steps over one field; groups (3, 4) do not exist in our messages.
bool skip_field(CodedInputStream& in, std::uint32_t tag, std::size_t& entries) {
  std::uint64_t number = 0;
  std::uint32_t small = 0;
  switch (tag & 7) {
    case kVarint:
      return in.ReadVarint64(&number);
    case kFixed64:
      return in.ReadLittleEndian64(&number);
    case kFixed32:
      return in.ReadLittleEndian32(&small);
    case kLengthDelimited:
      return in.ReadVarint32(&small) && in.Skip(static_cast<int>(small)) &&
             ++entries <= kEntriesMax;
    default:
      return false;
  }
}

bool few_enough_fields(const std::uint8_t* data, int bytes) {
  CodedInputStream in(data, bytes);
  std::size_t entries = 0;
  while (const std::uint32_t tag = in.ReadTag()) {
    if (!skip_field(in, tag, entries)) return false;
  }
  return in.ConsumedEntireMessage();
}

std::uint64_t advice_bits(const ErrorAdvice& advice) noexcept {
  return (advice.retriable ? 1u : 0u) | (advice.refresh_metadata ? 2u : 0u) |
         (advice.fatal ? 4u : 0u) | (advice.maybe_applied ? 8u : 0u);
}

}  // namespace

bool parse(base::Bytes header, google::protobuf::MessageLite& message) {
  if (header.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) return false;
  const auto* data = reinterpret_cast<const std::uint8_t*>(header.data());
  const int bytes = static_cast<int>(header.size());
  if (!few_enough_fields(data, bytes)) return false;
  CodedInputStream in(data, bytes);
  in.SetRecursionLimit(kNestingMax);
  in.SetTotalBytesLimit(bytes);
  return message.ParseFromCodedStream(&in) && in.ConsumedEntireMessage();
}

bool read_text(const std::string& from, std::string& to, std::size_t bytes_max) {
  if (from.size() > bytes_max || !valid_utf8(from)) return false;
  to = from;
  return true;
}

std::string sendable_text(std::string_view text, std::size_t bytes_max) {
  return replace_invalid_utf8(cut_utf8(text, bytes_max));
}

bool read_uuid(const std::string& from, base::Uuid& to) {
  const auto id = base::Uuid::from_bytes(base::as_bytes(from));
  if (id) to = *id;
  return id.has_value();
}

bool read_optional_uuid(const std::string& from, base::Uuid& to) {
  return from.empty() || read_uuid(from, to);
}

std::string optional_uuid(const base::Uuid& id) { return id.is_zero() ? std::string() : id.raw(); }

bool read_partition(const wire::Partition& from, model::PartitionId& to) {
  return read_uuid(from.topic(), to.topic) && read_integer(from.number(), to.partition);
}

void write_partition(const model::PartitionId& from, wire::Partition& to) {
  to.set_topic(from.topic.raw());
  to.set_number(static_cast<std::uint64_t>(from.partition));
}

bool read_status(const wire::Status& from, Status& to) {
  to.advice.retriable = (from.flags() & 1) != 0;
  to.advice.refresh_metadata = (from.flags() & 2) != 0;
  to.advice.fatal = (from.flags() & 4) != 0;
  to.advice.maybe_applied = (from.flags() & 8) != 0;
  return read_integer(from.code(), to.code) && read_text(from.text(), to.text, kTextBytesMax) &&
         read_integer(from.broker(), to.broker);
}

void write_status(const Status& from, wire::Status& to) {
  to.set_code(static_cast<std::uint64_t>(from.code));
  to.set_flags(advice_bits(from.advice));
  to.set_text(sendable_text(from.text, kTextBytesMax));
  to.set_broker(from.broker);
}

bool read_names(const google::protobuf::RepeatedPtrField<std::string>& from,
                std::vector<std::string>& to, std::size_t bytes_max) {
  if (static_cast<std::size_t>(from.size()) > kEntriesMax) return false;
  to.resize(static_cast<std::size_t>(from.size()));
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (!read_text(from[static_cast<int>(i)], to[i], bytes_max)) return false;
  }
  return true;
}

void write_names(const std::vector<std::string>& from,
                 google::protobuf::RepeatedPtrField<std::string>& to, std::size_t bytes_max) {
  for (const std::string& name : from) *to.Add() = sendable_text(name, bytes_max);
}

bool read_uuids(const google::protobuf::RepeatedPtrField<std::string>& from,
                std::vector<base::Uuid>& to, std::size_t items_max) {
  if (static_cast<std::size_t>(from.size()) > items_max) return false;
  to.resize(static_cast<std::size_t>(from.size()));
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (!read_uuid(from[static_cast<int>(i)], to[i])) return false;
  }
  return true;
}

void write_uuids(const std::vector<base::Uuid>& from,
                 google::protobuf::RepeatedPtrField<std::string>& to) {
  for (const base::Uuid& id : from) *to.Add() = id.raw();
}

bool read_brokers(const google::protobuf::RepeatedField<std::int64_t>& from,
                  std::vector<std::int32_t>& to) {
  if (static_cast<std::size_t>(from.size()) > kReplicasMax) return false;
  to.resize(static_cast<std::size_t>(from.size()));
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (!read_integer(from[static_cast<int>(i)], to[i])) return false;
  }
  return true;
}

void write_brokers(const std::vector<std::int32_t>& from,
                   google::protobuf::RepeatedField<std::int64_t>& to) {
  for (const std::int32_t id : from) to.Add(id);
}

bool read_members(const google::protobuf::RepeatedPtrField<wire::IsrMember>& from,
                  std::vector<model::IsrMember>& to) {
  const auto read = [](const wire::IsrMember& one, model::IsrMember& member) {
    return read_id(one.broker(), member.broker) && read_id(one.epoch(), member.epoch);
  };
  return read_all<wire::IsrMember, model::IsrMember>(from, to, read, kReplicasMax);
}

void write_members(const std::vector<model::IsrMember>& from,
                   google::protobuf::RepeatedPtrField<wire::IsrMember>& to) {
  for (const auto& member : from) {
    auto& one = *to.Add();
    one.set_broker(member.broker.value());
    one.set_epoch(member.epoch.value());
  }
}

}  // namespace mq::protocol::codec
