#include "storage/journal_inspect.h"

#include <array>

namespace mq::storage {

Result<JournalFileHeader> for_each_journal_group(
    base::FileSystem& files, const std::string& path,
    const std::function<bool(const InspectedGroup&)>& visit) {
  MQ_TRY(const auto file, files.open(path, base::OpenMode::read));
  std::vector<std::byte> block(kJournalBlockBytes);
  MQ_TRY(const auto got, file->read_at(block, 0));
  MQ_TRY(const auto header, decode_journal_header(base::Bytes(block).first(got)));
  MQ_TRY(const auto bytes, file->size());
  JournalFileReader reader(*file, header, bytes);
  bool first = true;
  JournalGroupHeader before;
  while (true) {
    MQ_TRY_VOID(reader.next());
    if (reader.at_end()) return header;
    InspectedGroup group;
    group.position = reader.position();
    group.header = reader.group();
    group.skipped = reader.skipped();
    group.follows = first || (group.header.number == before.number + 1 &&
                              group.header.previous_crc == before.header_crc);
    JournalEntryReader entries(reader.body(), group.header.entries);
    while (true) {
      auto entry = entries.next();
      group.entries_good = entry.has_value();
      if (!entry || !*entry) break;
      group.entries.push_back(*std::move(*entry));
    }
    if (!visit(group)) return header;
    before = group.header;
    first = false;
  }
}

std::string_view journal_entry_name(const JournalContent& content) noexcept {
  static constexpr std::array<std::string_view, 13> kNames = {
      "",       "append",     "image",  "cut",      "log start", "epoch start", "recovery point",
      "create", "durability", "delete", "snapshot", "partition", "disk"};
  return kNames[std::visit([](const auto& what) { return what.kKind; }, content)];
}

}  // namespace mq::storage
