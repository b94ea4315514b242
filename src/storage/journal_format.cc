#include "storage/journal_format.h"

#include "base/crc32c.h"

namespace mq::storage {
namespace {

using base::Bytes;
using base::load_le;
using base::store_le;
using base::Uuid;
using model::Durability;
using model::LeaderEpoch;
using model::Offset;

// File header: magic, then
constexpr std::size_t kHeaderVersion = 8;  // u32
constexpr std::size_t kHeaderCrc = 12;     // u32, of the header but for these 4 bytes
constexpr std::size_t kHeaderFields = 16;  // cluster, broker, disk, journal, generation, nonce

// Group header: magic, then
constexpr std::size_t kGroupGeneration = 8;  // u64
constexpr std::size_t kGroupNonce = 16;      // u64
constexpr std::size_t kGroupNumber = 24;     // u64
constexpr std::size_t kGroupBodyBytes = 32;  // u32
constexpr std::size_t kGroupEntries = 36;    // u32
constexpr std::size_t kGroupPrevious = 40;   // u32
constexpr std::size_t kGroupBodyCrc = 44;    // u32
constexpr std::size_t kGroupHeaderCrc = 48;  // u32, of bytes 0-47

// Entry header.
constexpr std::size_t kEntryTopic = 1;       // uuid; the kind comes first
constexpr std::size_t kEntryPartition = 17;  // i32
constexpr std::size_t kEntryBytes = 21;      // u32, behind the entry header

Error malformed() { return make_error_code(base::BaseErrc::malformed); }

std::uint32_t crc_of_header(Bytes header) {
  return base::crc32c(header.subspan(kHeaderFields, kJournalHeaderBytes - kHeaderFields),
                      base::crc32c(header.first(kHeaderCrc)));
}

void put(FieldWriter& out, const JournalDiskState& disk) {
  out.put(disk.intact.disk);
  out.put(disk.intact.memory);
  out.put(disk.files);
}
JournalDiskState take_disk(FieldReader& in) {
  JournalDiskState disk;
  disk.intact.disk = in.take<std::int64_t>();
  disk.intact.memory = in.take<std::int64_t>();
  disk.files = in.take<std::uint32_t>();
  return disk;
}

void put(FieldWriter& out, const EpochStart& start) {
  out.put(start.leader_epoch.value());
  out.put(start.start_offset.value());
}
EpochStart take_epoch_start(FieldReader& in) {
  EpochStart start;
  start.leader_epoch = LeaderEpoch(in.take<std::int32_t>());
  start.start_offset = Offset(in.take<std::int64_t>());
  return start;
}

void put(FieldWriter& out, const JournalLogState& state) {
  out.put(static_cast<std::uint8_t>(state.durability));
  out.put(state.disk_from.value());
  out.put(state.log_start.value());
  put_sync_point(out, state.recovery_point);
  out.put(state.end.value());
  out.put(state.durable.value());
  put(out, state.epoch_start);
  out.put(static_cast<std::uint8_t>(state.cut.has_value()));
  if (state.cut) put_sync_point(out, *state.cut);
  out.put(state.intact_since);
}

/// Fields of an entry about which a value can be wrong although the checksum holds.
struct EntryFields {
  explicit EntryFields(Bytes bytes) : in(bytes) {}
  FieldReader in;
  bool valid = true;

  Durability take_durability() {
    const auto value = in.take<std::uint8_t>();
    valid = valid && value <= static_cast<std::uint8_t>(Durability::memory);
    return static_cast<Durability>(value);
  }
  Offset take_offset() { return Offset(in.take<std::int64_t>()); }
  JournalLogState take_state() {
    JournalLogState state;
    state.durability = take_durability();
    state.disk_from = take_offset();
    state.log_start = take_offset();
    state.recovery_point = take_sync_point(in);
    state.end = take_offset();
    state.durable = take_offset();
    state.epoch_start = take_epoch_start(in);
    const auto cut = in.take<std::uint8_t>();
    valid = valid && cut <= 1;
    if (cut == 1) state.cut = take_sync_point(in);
    state.intact_since = in.take<std::int64_t>();
    return state;
  }
  [[nodiscard]] bool good() const { return valid && in.finished(); }
};

/// The bytes that an entry carries behind its fields.
Bytes tail_of(const JournalContent& content) {
  if (const auto* append = std::get_if<JournalAppend>(&content)) return append->batch;
  if (const auto* image = std::get_if<JournalImage>(&content)) return image->bytes;
  return {};
}

/// Writes the fields of each kind; take_content() is its mirror.
struct ContentWriter {
  FieldWriter& out;
  void operator()(const JournalAppend& append) const {
    out.put(append.durable.value());
    out.put(append.segment_base.value());
    out.put(append.position);
  }
  void operator()(const JournalImage& image) const {
    out.put(image.segment_base.value());
    out.put(image.position);
  }
  void operator()(const JournalCut& cut) const {
    put_sync_point(out, cut.end);
    out.put(cut.epoch.value());
  }
  void operator()(const JournalLogStart& start) const { out.put(start.offset.value()); }
  void operator()(const JournalEpochStart& epoch) const { put(out, epoch.start); }
  void operator()(const JournalRecoveryPoint& moved) const { put_sync_point(out, moved.point); }
  void operator()(const JournalCreate& create) const {
    out.put(static_cast<std::uint8_t>(create.durability));
    out.put(create.intact_since);
  }
  void operator()(const JournalDurability& change) const {
    out.put(static_cast<std::uint8_t>(change.durability));
    out.put(change.disk_from.value());
  }
  void operator()(const JournalDelete&) const {}
  void operator()(const JournalSnapshot& snapshot) const {
    out.put(snapshot.first_generation);
    out.put(snapshot.logs);
    put(out, snapshot.disk);
  }
  void operator()(const JournalSnapshotLog& log) const { put(out, log.state); }
  void operator()(const JournalDiskChange& change) const { put(out, change.disk); }
  void operator()(const JournalRestart& restart) const {
    put_sync_point(out, restart.start);
    out.put(restart.epoch.value());
    out.put(restart.intact_since);
  }
};

JournalContent take_content(std::uint8_t kind, EntryFields& fields, Bytes bytes) {
  FieldReader& in = fields.in;
  constexpr std::size_t kAppendFields = 24;
  constexpr std::size_t kImageFields = 16;
  const auto rest = [&](std::size_t from) {
    return in.take_bytes(bytes.size() < from ? 0 : bytes.size() - from);
  };
  switch (kind) {
    case JournalAppend::kKind: {
      JournalAppend append;
      append.durable = fields.take_offset();
      append.segment_base = fields.take_offset();
      append.position = in.take<std::uint64_t>();
      append.batch = rest(kAppendFields);
      return append;
    }
    case JournalImage::kKind: {
      JournalImage image;
      image.segment_base = fields.take_offset();
      image.position = in.take<std::uint64_t>();
      image.bytes = rest(kImageFields);
      return image;
    }
    case JournalCut::kKind: {
      JournalCut cut;
      cut.end = take_sync_point(in);
      cut.epoch = LeaderEpoch(in.take<std::int32_t>());
      return cut;
    }
    case JournalLogStart::kKind:
      return JournalLogStart{fields.take_offset()};
    case JournalEpochStart::kKind:
      return JournalEpochStart{take_epoch_start(in)};
    case JournalRecoveryPoint::kKind:
      return JournalRecoveryPoint{take_sync_point(in)};
    case JournalCreate::kKind: {
      JournalCreate create;
      create.durability = fields.take_durability();
      create.intact_since = in.take<std::int64_t>();
      return create;
    }
    case JournalDurability::kKind: {
      JournalDurability change;
      change.durability = fields.take_durability();
      change.disk_from = fields.take_offset();
      return change;
    }
    case JournalDelete::kKind:
      return JournalDelete{};
    case JournalSnapshot::kKind: {
      JournalSnapshot snapshot;
      snapshot.first_generation = in.take<std::uint64_t>();
      snapshot.logs = in.take<std::uint32_t>();
      snapshot.disk = take_disk(in);
      return snapshot;
    }
    case JournalSnapshotLog::kKind:
      return JournalSnapshotLog{fields.take_state()};
    case JournalDiskChange::kKind:
      return JournalDiskChange{take_disk(in)};
    case JournalRestart::kKind: {
      JournalRestart restart;
      restart.start = take_sync_point(in);
      restart.epoch = LeaderEpoch(in.take<std::int32_t>());
      restart.intact_since = in.take<std::int64_t>();
      return restart;
    }
    default:
      fields.valid = false;
      return JournalDelete{};
  }
}

}  // namespace

std::vector<std::byte> encode_journal_header(const JournalFileHeader& header) {
  FieldWriter out;
  out.put_bytes(base::as_bytes(kJournalMagic));
  out.put(kJournalVersion);
  out.put(std::uint32_t{0});  // the checksum
  out.put_bytes(header.cluster.bytes());
  out.put(header.broker.value());
  out.put_bytes(header.disk.bytes());
  out.put_bytes(header.journal.bytes());
  out.put(header.generation);
  out.put(header.nonce);
  std::vector<std::byte> block(kJournalBlockBytes);
  std::copy(out.bytes().begin(), out.bytes().end(), block.begin());
  store_le(block.data() + kHeaderCrc, crc_of_header(block));
  return block;
}

Result<JournalFileHeader> decode_journal_header(Bytes file) {
  if (file.size() < kJournalHeaderBytes ||
      base::as_text(file.first(kJournalMagic.size())) != kJournalMagic ||
      load_le<std::uint32_t>(file.data() + kHeaderCrc) != crc_of_header(file))
    return malformed();
  if (load_le<std::uint32_t>(file.data() + kHeaderVersion) != kJournalVersion)
    return StorageErrc::unknown_format_version;
  FieldReader in(file.subspan(kHeaderFields));
  JournalFileHeader header;
  header.cluster = Uuid::from_bytes(in.take_bytes(16)).value_or(Uuid());
  header.broker = model::BrokerId(in.take<std::int32_t>());
  header.disk = Uuid::from_bytes(in.take_bytes(16)).value_or(Uuid());
  header.journal = Uuid::from_bytes(in.take_bytes(16)).value_or(Uuid());
  header.generation = in.take<std::uint64_t>();
  header.nonce = in.take<std::uint64_t>();
  return header;
}

std::uint64_t journal_group_file_bytes(std::uint64_t body_bytes) noexcept {
  const std::uint64_t bytes = kJournalGroupHeaderBytes + body_bytes;
  return (bytes + kJournalBlockBytes - 1) / kJournalBlockBytes * kJournalBlockBytes;
}

std::optional<JournalGroupHeader> decode_journal_group_header(Bytes bytes) {
  if (bytes.size() < kJournalGroupHeaderBytes ||
      base::as_text(bytes.first(kJournalGroupMagic.size())) != kJournalGroupMagic)
    return std::nullopt;
  JournalGroupHeader header;
  header.header_crc = load_le<std::uint32_t>(bytes.data() + kGroupHeaderCrc);
  if (header.header_crc != base::crc32c(bytes.first(kGroupHeaderCrc))) return std::nullopt;
  header.generation = load_le<std::uint64_t>(bytes.data() + kGroupGeneration);
  header.nonce = load_le<std::uint64_t>(bytes.data() + kGroupNonce);
  header.number = load_le<std::uint64_t>(bytes.data() + kGroupNumber);
  header.body_bytes = load_le<std::uint32_t>(bytes.data() + kGroupBodyBytes);
  header.entries = load_le<std::uint32_t>(bytes.data() + kGroupEntries);
  header.previous_crc = load_le<std::uint32_t>(bytes.data() + kGroupPrevious);
  header.body_crc = load_le<std::uint32_t>(bytes.data() + kGroupBodyCrc);
  if (header.body_bytes > kJournalGroupBytesMax ||
      header.entries > header.body_bytes / kJournalEntryHeaderBytes)
    return std::nullopt;
  return header;
}

bool journal_body_holds(const JournalGroupHeader& header, Bytes body) noexcept {
  return body.size() == header.body_bytes && base::crc32c(body) == header.body_crc;
}

void JournalGroupBuilder::clear() {
  bytes_.resize(kJournalGroupHeaderBytes);
  entries_ = 0;
}

std::uint64_t JournalGroupBuilder::file_bytes() const noexcept {
  return journal_group_file_bytes(bytes_.size() - kJournalGroupHeaderBytes);
}

void JournalGroupBuilder::add(const model::PartitionId& id, const JournalContent& content) {
  FieldWriter fields;
  std::visit(ContentWriter{fields}, content);
  const Bytes tail = tail_of(content);
  const std::size_t at = bytes_.size();
  bytes_.resize(at + kJournalEntryHeaderBytes);
  std::byte* const head = bytes_.data() + at;
  head[0] = std::byte{std::visit([](const auto& what) { return what.kKind; }, content)};
  const auto topic = id.topic.bytes();
  std::memcpy(head + kEntryTopic, topic.data(), topic.size());
  store_le(head + kEntryPartition, id.partition);
  store_le(head + kEntryBytes, static_cast<std::uint32_t>(fields.bytes().size() + tail.size()));
  bytes_.insert(bytes_.end(), fields.bytes().begin(), fields.bytes().end());
  bytes_.insert(bytes_.end(), tail.begin(), tail.end());
  ++entries_;
}

Bytes JournalGroupBuilder::finish(JournalGroupHeader& header) {
  const Bytes body = Bytes(bytes_).subspan(kJournalGroupHeaderBytes);
  header.body_bytes = static_cast<std::uint32_t>(body.size());
  header.entries = entries_;
  header.body_crc = base::crc32c(body);
  std::byte* const to = bytes_.data();
  std::memcpy(to, kJournalGroupMagic.data(), kJournalGroupMagic.size());
  store_le(to + kGroupGeneration, header.generation);
  store_le(to + kGroupNonce, header.nonce);
  store_le(to + kGroupNumber, header.number);
  store_le(to + kGroupBodyBytes, header.body_bytes);
  store_le(to + kGroupEntries, header.entries);
  store_le(to + kGroupPrevious, header.previous_crc);
  store_le(to + kGroupBodyCrc, header.body_crc);
  header.header_crc = base::crc32c(Bytes(bytes_).first(kGroupHeaderCrc));
  store_le(to + kGroupHeaderCrc, header.header_crc);
  bytes_.resize(journal_group_file_bytes(header.body_bytes));
  return bytes_;
}

Result<std::optional<JournalEntry>> JournalEntryReader::next() {
  std::optional<JournalEntry> entry;
  if (entries_ == 0) {
    if (!left_.empty()) return malformed();
    return entry;
  }
  --entries_;
  if (left_.size() < kJournalEntryHeaderBytes) return malformed();
  const auto kind = static_cast<std::uint8_t>(left_[0]);
  const auto bytes = load_le<std::uint32_t>(left_.data() + kEntryBytes);
  if (bytes > left_.size() - kJournalEntryHeaderBytes) return malformed();
  entry.emplace();
  entry->id.topic = Uuid::from_bytes(left_.subspan(kEntryTopic, 16)).value_or(Uuid());
  entry->id.partition = load_le<std::int32_t>(left_.data() + kEntryPartition);
  const Bytes rest = left_.subspan(kJournalEntryHeaderBytes, bytes);
  EntryFields fields(rest);
  entry->content = take_content(kind, fields, rest);
  if (!fields.good()) return malformed();
  left_ = left_.subspan(kJournalEntryHeaderBytes + bytes);
  return entry;
}

}  // namespace mq::storage
