// A whole journal through its reader: groups with right checksums and entries that nobody would
// write, in files of any generations, and a few bytes of it changed.
#include "base/check.h"
#include "fuzz/fuzz_input.h"
#include "storage/journal_reader.h"
#include "support/sim_file_system.h"

namespace {

using namespace mq;
using model::Offset;

constexpr const char* kDirectory = "journal";
constexpr std::size_t kFileBytes = 64 << 10;

storage::JournalOwner owner() {
  storage::JournalOwner owner;
  owner.cluster = base::Uuid::from_random(1, 1);
  owner.broker = model::BrokerId(3);
  owner.disk = base::Uuid::from_random(2, 2);
  owner.journal = base::Uuid::from_random(3, 3);
  return owner;
}

/// Builds journal files as the input says.
class Journal {
 public:
  explicit Journal(fuzz::Input in) : in_(in) {
    static_cast<void>(files.make_directory(kDirectory));
  }

  void make() {
    const std::uint32_t count = 1 + number(2);
    for (std::uint32_t i = 1; i <= count; ++i) make_file(i);
  }

  testing::SimFileSystem files;

 private:
  std::uint8_t number(std::uint8_t max) {
    return static_cast<std::uint8_t>(in_.number<std::uint8_t>() % (max + 1));
  }
  /// Mostly small, sometimes anything.
  std::int64_t offset() {
    const auto kind = in_.number<std::uint8_t>();
    return kind < 250 ? kind : in_.number<std::int64_t>();
  }
  storage::SyncPoint point() {
    storage::SyncPoint point;
    point.offset = Offset(offset());
    point.segment_base = Offset(offset());
    point.position = static_cast<std::uint64_t>(offset());
    return point;
  }
  model::PartitionId partition() { return {base::Uuid::from_random(7, 7), number(2)}; }

  storage::JournalContent content() {
    const storage::EpochStart epoch_start{model::LeaderEpoch(number(5)), Offset(offset())};
    const auto durability = number(1) == 0 ? model::Durability::disk : model::Durability::memory;
    switch (number(12)) {
      case 0:
        return storage::JournalAppend{
            Offset(offset()), Offset(offset()), static_cast<std::uint64_t>(offset()),
            in_.rest().first(std::min<std::size_t>(200, in_.rest().size()))};
      case 1:
        return storage::JournalImage{
            Offset(offset()), static_cast<std::uint64_t>(offset()),
            in_.rest().first(std::min<std::size_t>(50, in_.rest().size()))};
      case 2:
        return storage::JournalCut{point(), model::LeaderEpoch(number(5))};
      case 3:
        return storage::JournalLogStart{Offset(offset())};
      case 4:
        return storage::JournalEpochStart{epoch_start};
      case 5:
        return storage::JournalRecoveryPoint{point()};
      case 6:
        return storage::JournalCreate{durability, offset()};
      case 7:
        return storage::JournalDurability{durability, Offset(offset())};
      case 8:
        return storage::JournalDelete{};
      case 9:
        return storage::JournalDiskChange{{{offset(), offset()}, number(4)}};
      case 10:
        return storage::JournalSnapshot{number(4), number(3), {{offset(), offset()}, number(4)}};
      case 11:
        return storage::JournalRestart{point(), model::LeaderEpoch(number(5)), offset()};
      default: {
        storage::JournalLogState state;
        state.durability = durability;
        state.log_start = Offset(offset());
        state.recovery_point = point();
        state.end = Offset(offset());
        state.durable = Offset(offset());
        state.epoch_start = epoch_start;
        if (number(1) == 1) state.cut = point();
        return storage::JournalSnapshotLog{state};
      }
    }
  }

  void add_group(std::vector<std::byte>& file, const storage::JournalFileHeader& use) {
    storage::JournalGroupBuilder builder;
    const std::uint32_t entries = 1 + number(4);
    for (std::uint32_t i = 0; i < entries; ++i) builder.add(partition(), content());
    storage::JournalGroupHeader group;
    group.generation = use.generation;
    group.nonce = use.nonce;
    if (number(15) != 0) ++group_;
    group.number = group_;
    group.previous_crc = number(15) == 0 ? 0 : previous_;
    const base::Bytes bytes = builder.finish(group);
    previous_ = group.header_crc;
    if (file.size() + bytes.size() <= kFileBytes)
      file.insert(file.end(), bytes.begin(), bytes.end());
  }

  void make_file(std::uint32_t file_number) {
    const auto o = owner();
    const std::uint64_t generation = number(15) == 0 ? number(3) : file_number;
    const storage::JournalFileHeader use{o.cluster, o.broker,   o.disk,
                                         o.journal, generation, generation * 77};
    std::vector<std::byte> file = storage::encode_journal_header(use);
    file.resize(storage::kJournalBlockBytes);
    if (number(15) != 0) {
      storage::JournalGroupBuilder builder;
      builder.add({}, storage::JournalSnapshot{number(2), 0, {{-1, -1}, 1u + number(2)}});
      storage::JournalGroupHeader group;
      group.generation = use.generation;
      group.nonce = use.nonce;
      group.number = ++group_;
      group.previous_crc = previous_;
      const base::Bytes bytes = builder.finish(group);
      previous_ = group.header_crc;
      file.insert(file.end(), bytes.begin(), bytes.end());
    }
    for (std::uint32_t groups = number(6); groups > 0; --groups) add_group(file, use);
    file.resize(kFileBytes);
    for (std::uint32_t flips = number(2); flips > 0; --flips)
      file[in_.number<std::uint16_t>() % file.size()] ^= std::byte{in_.number<std::uint8_t>()};
    const std::string path =
        std::string(kDirectory) + "/" + storage::journal_file_name(file_number);
    const auto made = files.open(path, base::OpenMode::create);
    MQ_CHECK(made.has_value());
    files.set_content(path, std::move(file));
  }

  fuzz::Input in_;
  std::uint64_t group_ = 0;
  std::uint32_t previous_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Journal journal{fuzz::Input(data, size)};
  journal.make();
  const auto before = journal.files.clone();
  const auto first = storage::replay_journal(journal.files, kDirectory, owner());
  const auto again = storage::replay_journal(journal.files, kDirectory, owner());
  MQ_CHECK(first.has_value() == again.has_value());
  for (const auto& file : before->files_below(kDirectory))
    MQ_CHECK(before->content(file) == journal.files.content(file));
  if (!first) return 0;
  // What cannot be believed is said, and the same journal says the same.
  MQ_CHECK((first->lost || first->damaged) == !first->problem.empty());
  MQ_CHECK(first->lost == again->lost && first->damaged == again->damaged &&
           first->last_group == again->last_group && first->logs.size() == again->logs.size());
  MQ_CHECK(first->logs.size() <= 4);
  return 0;
}
