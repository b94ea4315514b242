#include "storage/journal_inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace mq::storage {
namespace {

/// What stands behind the last good group.
Result<std::string> why_it_ends(base::File& file, const InspectedJournal& journal) {
  if (journal.end >= journal.bytes) return std::string("the file is full");
  std::vector<std::byte> block(kJournalBlockBytes);
  MQ_TRY(const auto got, file.read_at(block, journal.end));
  const auto head = base::Bytes(block).first(std::min(got, kJournalGroupHeaderBytes));
  const auto group = decode_journal_group_header(head);
  const bool zeros = std::ranges::all_of(head, [](std::byte b) { return b == std::byte{0}; });
  if (!group) return std::string(zeros ? "nothing was written there" : "no group begins there");
  if (group->generation != journal.header.generation || group->nonce != journal.header.nonce)
    return fmt::format("group {} there is of an earlier use, generation {}", group->number,
                       group->generation);
  return fmt::format("group {} is torn: its body does not hold", group->number);
}

}  // namespace

Result<InspectedJournal> for_each_journal_group(
    base::FileSystem& files, const std::string& path,
    const std::function<bool(const InspectedGroup&)>& visit) {
  MQ_TRY(const auto file, files.open(path, base::OpenMode::read));
  std::vector<std::byte> block(kJournalBlockBytes);
  MQ_TRY(const auto got, file->read_at(block, 0));
  InspectedJournal journal;
  MQ_TRY(journal.header, decode_journal_header(base::Bytes(block).first(got)));
  MQ_TRY(journal.bytes, file->size());
  journal.end = kJournalBlockBytes;
  JournalFileReader reader(*file, journal.header, journal.bytes);
  JournalGroupHeader before;
  while (true) {
    MQ_TRY_VOID(reader.next());
    if (reader.at_end()) break;
    InspectedGroup group;
    group.position = reader.position();
    group.header = reader.group();
    group.skipped = reader.skipped();
    group.follows = journal.groups == 0 || (group.header.number == before.number + 1 &&
                                            group.header.previous_crc == before.header_crc);
    JournalEntryReader entries(reader.body(), group.header.entries);
    while (true) {
      auto entry = entries.next();
      group.entries_good = entry.has_value();
      if (!entry || !*entry) break;
      group.entries.push_back(**entry);
    }
    if (!visit(group)) return journal;
    ++journal.groups;
    journal.end = reader.position() + journal_group_file_bytes(group.header.body_bytes);
    before = group.header;
  }
  MQ_TRY(journal.why, why_it_ends(*file, journal));
  return journal;
}

std::string_view journal_entry_name(const JournalContent& content) noexcept {
  static constexpr std::array<std::string_view, 14> kNames = {
      "",       "append",     "image",  "cut",      "log start", "epoch start", "recovery point",
      "create", "durability", "delete", "snapshot", "partition", "disk",        "restart"};
  return kNames[std::visit([](const auto& what) { return what.kKind; }, content)];
}

}  // namespace mq::storage
