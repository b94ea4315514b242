#include "storage/journal_reader.h"

#include "base/crc32c.h"
#include "base/mutants.h"
#include "storage/journal_files.h"
#include "storage/journal_inspect.h"
#include "storage_world.h"

namespace mq::testing {
namespace {

using base::Bytes;
using model::LeaderEpoch;
using model::Offset;
using namespace storage;

constexpr const char* kDirectory = "journal";
constexpr std::uint64_t kFileBytes = 128 << 10;

/// Writes journal files group by group, as the writer would.
class Script {
 public:
  Script() {
    owner.cluster = base::Uuid::from_random(1, 1);
    owner.broker = model::BrokerId(3);
    owner.disk = base::Uuid::from_random(2, 2);
    owner.journal = base::Uuid::from_random(3, 3);
    EXPECT_TRUE(files.make_directory(kDirectory));
    EXPECT_TRUE(files.sync_directory("."));
  }

  [[nodiscard]] static std::string path(std::uint32_t number) {
    return std::string(kDirectory) + "/" + journal_file_name(number);
  }
  JournalFileHeader header(std::uint64_t generation) const {
    return {owner.cluster, owner.broker, owner.disk, owner.journal, generation, generation * 77};
  }
  void make(std::uint32_t number) {
    ASSERT_TRUE(make_journal_file(files, kDirectory, number, kFileBytes, header(0)));
    ++disk.files;
  }
  /// Goes on in file `number`; its snapshot says what `states` holds.
  void begin(std::uint32_t number, std::uint64_t generation, std::uint64_t first_generation) {
    file = *files.open(path(number), base::OpenMode::write);
    use = header(generation);
    const auto block = encode_journal_header(use);
    const Bytes piece = block;
    ASSERT_TRUE(base::write_fully(*file, std::span(&piece, 1), 0));
    ASSERT_TRUE(file->sync_data());
    position = kJournalBlockBytes;
    add({}, JournalSnapshot{first_generation, static_cast<std::uint32_t>(states.size()), disk});
    for (const auto& [id, state] : states) add(id, JournalSnapshotLog{state});
    commit();
  }
  void add(const model::PartitionId& id, const JournalContent& content) {
    builder.add(id, content);
  }
  /// Writes the group; returns where it begins.
  std::uint64_t commit(bool sync = true) {
    JournalGroupHeader group;
    group.generation = use.generation;
    group.nonce = use.nonce;
    group.number = ++number;
    group.previous_crc = previous;
    const Bytes bytes = builder.finish(group);
    const auto at = position;
    EXPECT_TRUE(base::write_fully(*file, std::span(&bytes, 1), position));
    if (sync) {
      EXPECT_TRUE(file->sync_data());
    }
    position += bytes.size();
    previous = group.header_crc;
    builder.clear();
    return at;
  }
  /// A batch of `records` at `base`, stamped, which lives as long as this.
  Bytes batch(Offset base, int records, LeaderEpoch epoch = LeaderEpoch(1),
              std::size_t bytes = 100) {
    batches.push_back(make_batch(static_cast<std::uint64_t>(batches.size()), records, bytes));
    const auto& made = batches.back().bytes;
    model::stamp({const_cast<std::byte*>(made.data()), made.size()}, base, epoch, 5);
    return made;
  }
  Offset append(const model::PartitionId& id, Offset base, std::uint64_t at, int records = 1,
                LeaderEpoch epoch = LeaderEpoch(1)) {
    JournalAppend entry;
    entry.durable = Offset(0);
    entry.segment_base = Offset(0);
    entry.position = at;
    entry.batch = batch(base, records, epoch);
    add(id, entry);
    return model::advance(base, records);
  }
  JournalReplay replay() {
    const auto found = replay_journal(files, kDirectory, owner);
    EXPECT_TRUE(found) << found.error().message();
    return found ? *found : JournalReplay();
  }
  void flip(std::uint32_t number_of_file, std::uint64_t at) {
    files.flip(path(number_of_file), at, std::byte{0x10});
  }

  SimFileSystem files;
  JournalOwner owner;
  JournalDiskState disk;
  std::map<model::PartitionId, JournalLogState> states;
  std::unique_ptr<base::File> file;
  JournalFileHeader use;
  std::uint64_t position = 0;
  std::uint64_t number = 0;
  std::uint32_t previous = 0;
  JournalGroupBuilder builder;
  std::deque<base::SharedBytes> batches;
  const model::PartitionId a{base::Uuid::from_random(8, 8), 0};
  const model::PartitionId b{base::Uuid::from_random(8, 8), 1};
};

SyncPoint point(std::int64_t offset, std::uint64_t position) {
  return {Offset(offset), Offset(0), position, LeaderEpoch(1), 5, 5};
}

/// Two files; partitions a and b have three batches each in three groups.
struct Filled : Script {
  Filled() {
    make(0);
    make(1);
    begin(0, 1, 1);
    add(a, JournalCreate{});
    add(b, JournalCreate{model::Durability::disk});
    groups.push_back(commit());
    for (int i = 0; i < 3; ++i) {
      append(a, Offset(i), static_cast<std::uint64_t>(i) * 1'000);
      append(b, Offset(i), static_cast<std::uint64_t>(i) * 1'000);
      groups.push_back(commit());
    }
  }
  std::vector<std::uint64_t> groups;
};

TEST(JournalReplay, GivesBackWhatWasWritten) {
  Filled journal;
  const auto replay = journal.replay();
  EXPECT_FALSE(replay.lost);
  EXPECT_FALSE(replay.damaged) << replay.problem;
  ASSERT_EQ(replay.logs.size(), 2u);
  const auto& log = replay.logs.at(journal.a);
  EXPECT_EQ(log.state.end, Offset(3));
  EXPECT_FALSE(log.gap());
  EXPECT_EQ(log.bound(), Offset(3));
  ASSERT_EQ(log.writes.size(), 3u);
  std::vector<std::byte> bytes(log.writes[1].bytes);
  ASSERT_TRUE(replay.files[log.writes[1].file]->read_at(bytes, log.writes[1].at));
  EXPECT_TRUE(std::ranges::equal(bytes, journal.batches[2].bytes));
  EXPECT_EQ(replay.newest_generation, 1u);
  EXPECT_EQ(replay.last_group, 5u);
}

TEST(JournalInspect, ShowsGroupsAndWhyTheyEnd) {
  Filled journal;
  std::vector<std::string> seen;
  const auto look = [&](const InspectedGroup& group) {
    std::string kinds;
    for (const auto& entry : group.entries)
      kinds += std::string(journal_entry_name(entry.content)) + ";";
    seen.push_back(fmt::format("{} {} {}", group.position, group.header.number, kinds));
    EXPECT_TRUE(group.follows && !group.skipped && group.entries_good);
    return true;
  };
  const auto whole = for_each_journal_group(journal.files, Script::path(0), look);
  ASSERT_TRUE(whole);
  EXPECT_EQ(seen, (std::vector<std::string>{"4096 1 snapshot;", "8192 2 create;create;",
                                            "12288 3 append;append;", "16384 4 append;append;",
                                            "20480 5 append;append;"}));
  EXPECT_EQ(whole->groups, 5U);
  EXPECT_EQ(whole->end, 24'576U);
  EXPECT_EQ(whole->why, "nothing was written there");
  journal.flip(0, 20'480 + 100);
  seen.clear();
  const auto torn = for_each_journal_group(journal.files, Script::path(0), look);
  EXPECT_EQ(torn->why, "group 5 is torn: its body does not hold");
  journal.begin(0, 2, 2);
  seen.clear();
  EXPECT_EQ(for_each_journal_group(journal.files, Script::path(0), look)->why,
            "group 2 there is of an earlier use, generation 1");
  EXPECT_FALSE(for_each_journal_group(journal.files, "journal/none", look));
}

TEST(JournalInspect, ShowsGroupsThatDoNotFollow) {
  Filled journal;
  journal.flip(0, 16'384 + 100);
  std::vector<std::uint64_t> broken;
  const auto look = [&](const InspectedGroup& group) {
    if (!group.follows || group.skipped) broken.push_back(group.header.number);
    return true;
  };
  ASSERT_TRUE(for_each_journal_group(journal.files, Script::path(0), look));
  EXPECT_EQ(broken, std::vector<std::uint64_t>{5});
}

TEST(JournalReplay, TornLastGroupIsTheTail) {
  const Filled journal;
  for (std::uint64_t at = 0; at < 540; at += 7) {
    Filled torn;
    torn.flip(0, torn.groups.back() + at);
    const auto replay = torn.replay();
    EXPECT_FALSE(replay.damaged) << at << replay.problem;
    EXPECT_EQ(replay.logs.at(torn.a).state.end, Offset(2)) << at;
    EXPECT_FALSE(replay.logs.at(torn.a).gap());
  }
}

/// Whatever the power cut leaves of a group under way: whole or nothing.
TEST(JournalReplay, PowerCutLeavesAGroupWholeOrNotAtAll) {
  int whole = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Filled journal;
    for (int i = 0; i < 20; ++i)
      journal.append(journal.a, Offset(3 + i), static_cast<std::uint64_t>(3 + i) * 1'000);
    journal.commit(false);
    SimRandom random(seed);
    journal.files.crash(random);
    const auto replay = journal.replay();
    EXPECT_FALSE(replay.damaged) << seed << " " << replay.problem;
    const auto end = replay.logs.at(journal.a).state.end;
    EXPECT_TRUE(end == Offset(3) || end == Offset(23)) << seed << " " << end.value();
    whole += end == Offset(23);
  }
  EXPECT_GT(whole, 5);
  EXPECT_LT(whole, 195);
}

TEST(JournalReplay, GoodGroupBehindABrokenOneIsDamage) {
  Filled journal;
  // Partition b has a recovery point behind the damage, partition a has not.
  journal.add(journal.b, JournalRecoveryPoint{point(3, 3'000)});
  journal.commit();
  journal.flip(0, journal.groups[2] + 60);
  const auto replay = journal.replay();
  EXPECT_TRUE(replay.damaged);
  EXPECT_FALSE(replay.lost);
  EXPECT_TRUE(replay.logs.at(journal.a).gap());
  EXPECT_FALSE(replay.logs.at(journal.b).gap());
  EXPECT_EQ(replay.logs.at(journal.b).bound(), Offset(3));
}

TEST(JournalReplay, EveryDamagedByteOfAnInnerGroupIsNoticed) {  // LOG-3
  const Filled journal;
  const auto group = journal.groups[1];
  for (std::uint64_t at = 0; at < 540; ++at) {
    Filled damaged;
    damaged.flip(0, group + at);
    EXPECT_TRUE(damaged.replay().damaged) << at;
  }
}

TEST(JournalReplay, GroupsOfAnOlderUseAreNotTaken) {
  Filled journal;
  journal.states[journal.a] = created_log({});
  auto& state = journal.states[journal.a];
  state.recovery_point = point(3, 3'000);
  state.end = state.durable = Offset(3);
  journal.begin(0, 2, 2);
  const auto check = [&] {
    const auto replay = journal.replay();
    return !replay.damaged && replay.logs.size() == 1 && replay.logs.begin()->second.writes.empty();
  };
  EXPECT_TRUE(check());
  const base::EnabledMutant enabled("old_journal_generation");
  EXPECT_FALSE(check());
}

TEST(JournalReplay, GoesOnFromFileToFile) {
  Filled journal;
  journal.states[journal.a] = created_log({});
  journal.states[journal.b] = created_log({});
  journal.states[journal.a].end = journal.states[journal.b].end = Offset(3);
  journal.begin(1, 2, 1);
  journal.append(journal.a, Offset(3), 3'000);
  journal.commit();
  auto replay = journal.replay();
  EXPECT_FALSE(replay.damaged) << replay.problem;
  EXPECT_EQ(replay.logs.at(journal.a).state.end, Offset(4));
  EXPECT_EQ(replay.logs.at(journal.a).writes.size(), 4u);
  EXPECT_FALSE(replay.logs.at(journal.a).gap());

  // The end of the older file was durable before the newer one began.
  journal.flip(0, journal.groups.back() + 70);
  replay = journal.replay();
  EXPECT_TRUE(replay.damaged);
  EXPECT_TRUE(replay.logs.at(journal.a).gap());
}

TEST(JournalReplay, OlderFileIsNotNeededOnceItsEntriesLieBelowRecoveryPoints) {
  Filled journal;
  for (const auto& id : {journal.a, journal.b}) {
    journal.states[id] = created_log({});
    journal.states[id].end = Offset(3);
  }
  journal.begin(1, 2, 1);
  for (const auto& id : {journal.a, journal.b})
    journal.add(id, JournalRecoveryPoint{point(3, 3'000)});
  journal.commit();
  // The older file is about to be used again, and the crash comes behind its header.
  const auto block = encode_journal_header(journal.header(3));
  const Bytes piece = block;
  const auto file = *journal.files.open(Script::path(0), base::OpenMode::write);
  ASSERT_TRUE(base::write_fully(*file, std::span(&piece, 1), 0));
  ASSERT_TRUE(file->sync_data());
  const auto replay = journal.replay();
  EXPECT_FALSE(replay.damaged) << replay.problem;
  EXPECT_FALSE(replay.lost);
  EXPECT_EQ(replay.logs.at(journal.a).bound(), Offset(3));
  EXPECT_EQ(replay.newest_generation, 3u);
}

TEST(JournalReplay, MissingForeignAndUnreadableFiles) {
  {
    Script nothing;
    EXPECT_TRUE(nothing.replay().lost);
  }
  {
    Filled journal;
    journal.files.remove_tree(Script::path(1));
    EXPECT_TRUE(journal.replay().damaged);  // one of two
    journal.files.remove_tree(Script::path(0));
    EXPECT_TRUE(journal.replay().lost);
  }
  {
    Filled journal;
    journal.owner.disk = base::Uuid::from_random(9, 9);
    const auto replay = journal.replay();
    EXPECT_TRUE(replay.lost);
    EXPECT_TRUE(replay.found.front().foreign);
  }
  {
    Filled journal;
    journal.flip(0, 80);  // the header of the file in use
    const auto replay = journal.replay();
    EXPECT_TRUE(replay.lost);
    EXPECT_GE(replay.newest_generation, 1u);  // the next one is higher
  }
  {
    Filled journal;
    journal.flip(0, kJournalBlockBytes + 60);  // its snapshot
    EXPECT_TRUE(journal.replay().lost);
  }
  {
    Filled journal;
    journal.files.truncate_file(Script::path(0), journal.groups[2] + 100);
    const auto replay = journal.replay();
    EXPECT_EQ(replay.logs.at(journal.a).state.end, Offset(1));
  }
}

TEST(JournalReplay, DamagedHeaderOfTheNewestFileIsNoTornSwitch) {
  Filled journal;
  journal.states[journal.a] = created_log({});
  journal.begin(1, 2, 1);
  journal.flip(1, 20);
  const auto replay = journal.replay();
  EXPECT_TRUE(replay.damaged);
  EXPECT_EQ(replay.newest_generation, 2u);
}

TEST(JournalReplay, CutsAreObeyedInOrder) {
  const auto ends = [] {
    Filled journal;
    journal.add(journal.a, JournalCut{point(1, 1'000), LeaderEpoch(2)});
    journal.commit();
    auto replay = journal.replay();
    const auto after_cut = replay.logs.at(journal.a);
    journal.add(journal.a, JournalRecoveryPoint{point(1, 1'000)});
    journal.append(journal.a, Offset(1), 1'000, 5, LeaderEpoch(2));
    journal.commit();
    replay = journal.replay();
    return std::pair(after_cut, replay.logs.at(journal.a));
  };
  const auto [cut, later] = ends();
  EXPECT_EQ(cut.state.end, Offset(1));
  EXPECT_EQ(cut.bound(), Offset(1));
  ASSERT_TRUE(cut.state.cut);
  EXPECT_EQ(cut.writes.size(), 1u);
  EXPECT_EQ(later.state.end, Offset(6));
  EXPECT_FALSE(later.state.cut);
  ASSERT_TRUE(cut.lowest_cut);
  EXPECT_EQ(cut.lowest_cut->offset, Offset(1));
  EXPECT_FALSE(later.lowest_cut);  // the checkpoint has it
  EXPECT_FALSE(later.gap());

  const base::EnabledMutant enabled("journal_replay_without_cuts");
  EXPECT_EQ(ends().first.state.end, Offset(3));
}

/// A leader that goes on below the end has cut, whether or not the record is there.
TEST(JournalReplay, AppendBelowTheEndCutsFirst) {
  Filled journal;
  journal.append(journal.a, Offset(1), 1'000, 1, LeaderEpoch(2));
  journal.commit();
  const auto replay = journal.replay();
  const auto& log = replay.logs.at(journal.a);
  EXPECT_EQ(log.state.end, Offset(2));
  EXPECT_EQ(log.writes.size(), 2u);
  EXPECT_EQ(log.writes.back().leader_epoch, LeaderEpoch(2));
}

TEST(JournalReplay, ImagesAreKeptForTheBlockOfTheRecoveryPointAndClippedByCuts) {
  Filled journal;
  const std::vector<std::byte> old(904, std::byte{7});
  journal.add(journal.a, JournalImage{Offset(0), 4'096, old});
  journal.add(journal.a, JournalRecoveryPoint{point(3, 5'000)});
  journal.commit();
  auto replay = journal.replay();
  ASSERT_EQ(replay.logs.at(journal.a).writes.size(), 1u);
  EXPECT_EQ(replay.logs.at(journal.a).writes[0].bytes, 904u);
  journal.add(journal.a, JournalCut{point(2, 4'100), LeaderEpoch(2)});
  journal.commit();
  replay = journal.replay();
  ASSERT_EQ(replay.logs.at(journal.a).writes.size(), 1u);
  EXPECT_EQ(replay.logs.at(journal.a).writes[0].bytes, 4u);
  journal.add(journal.a, JournalRecoveryPoint{point(9, 9'000)});
  journal.commit();
  replay = journal.replay();
  EXPECT_TRUE(replay.logs.at(journal.a).writes.empty());
}

TEST(JournalReplay, DeletedAndCreatedAgain) {
  Filled journal;
  journal.add(journal.a, JournalDelete{});
  journal.commit();
  auto replay = journal.replay();
  EXPECT_FALSE(replay.logs.contains(journal.a));
  EXPECT_TRUE(replay.deleted.contains(journal.a));
  journal.add(journal.a, JournalCreate{model::Durability::memory});
  journal.add(journal.a, JournalEpochStart{{LeaderEpoch(4), Offset(0)}});
  journal.add(journal.a, JournalLogStart{Offset(0)});
  journal.add(journal.a, JournalDurability{model::Durability::disk, Offset(0)});
  journal.commit();
  replay = journal.replay();
  EXPECT_FALSE(replay.deleted.contains(journal.a));
  const auto& state = replay.logs.at(journal.a).state;
  EXPECT_EQ(state.end, Offset(0));
  EXPECT_EQ(state.epoch_start.leader_epoch, LeaderEpoch(4));
  EXPECT_EQ(state.durability, model::Durability::disk);
}

TEST(JournalReplay, NewerFormatIsRefused) {
  Filled journal;
  auto content = journal.files.content(Script::path(1));
  auto block = encode_journal_header(journal.header(0));
  block[8] = std::byte{9};
  const auto crc = base::crc32c(Bytes(block).subspan(16, kJournalHeaderBytes - 16),
                                base::crc32c(Bytes(block).first(12)));
  base::store_le(block.data() + 12, crc);
  std::ranges::copy(block, content.begin());
  journal.files.set_content(Script::path(1), content);
  EXPECT_EQ(replay_journal(journal.files, kDirectory, journal.owner).error(),
            make_error_code(StorageErrc::unknown_format_version));
}

}  // namespace
}  // namespace mq::testing
