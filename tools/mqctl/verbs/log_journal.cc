#include "mqctl/verbs/log_journal.h"

#include <fmt/format.h>

#include <algorithm>

#include "mqctl/cli/failure.h"
#include "mqctl/cli/text.h"
#include "storage/log_inspect.h"
#include "storage/storage_format.h"

namespace mq::mqctl {
namespace {

using storage::JournalContent;

/// A broker that works there goes on writing: what is read while a file is used again may look
/// damaged.
constexpr int kVerifyAttempts = 3;

std::string point_text(const storage::SyncPoint& point) {
  return fmt::format("offset {} at byte {} of segment {}, epoch {}", point.offset, point.position,
                     point.segment_base, point.leader_epoch);
}

std::string intact_text(const storage::JournalDiskState& disk) {
  const auto since = [](std::int64_t epoch) {
    return epoch < 0 ? std::string("always") : fmt::format("broker epoch {}", epoch);
  };
  return fmt::format("{} files, intact under disk since {}, under memory since {}", disk.files,
                     since(disk.intact.disk), since(disk.intact.memory));
}

std::string_view durability_text(model::Durability durability) {
  return durability == model::Durability::disk ? "disk" : "memory";
}

std::string own_intact_text(std::int64_t since) {
  return since < 0 ? std::string() : fmt::format("  intact since broker epoch {}", since);
}

/// What stands behind the kind and the partition of each.
struct ContentText {
  std::string operator()(const storage::JournalAppend& append) const {
    const auto batch = model::RecordBatchView::parse_header(append.batch);
    const auto offsets =
        batch ? fmt::format("offsets {}..{}", batch->base_offset(), batch->last_offset())
              : std::string("no record batch");
    return fmt::format("{}  {} bytes at byte {} of segment {}  durable {}", offsets,
                       append.batch.size(), append.position, append.segment_base, append.durable);
  }
  std::string operator()(const storage::JournalImage& image) const {
    return fmt::format("{} bytes at byte {} of segment {}", image.bytes.size(), image.position,
                       image.segment_base);
  }
  std::string operator()(const storage::JournalCut& cut) const {
    return fmt::format("{}, by epoch {}", point_text(cut.end), cut.epoch);
  }
  std::string operator()(const storage::JournalRestart& restart) const {
    return fmt::format("empty from {} on, by epoch {}{}", restart.start.offset, restart.epoch,
                       own_intact_text(restart.intact_since));
  }
  std::string operator()(const storage::JournalLogStart& start) const {
    return fmt::format("{}", start.offset);
  }
  std::string operator()(const storage::JournalEpochStart& epoch) const {
    return fmt::format("{} from offset {}", epoch.start.leader_epoch, epoch.start.start_offset);
  }
  std::string operator()(const storage::JournalRecoveryPoint& moved) const {
    return point_text(moved.point);
  }
  std::string operator()(const storage::JournalCreate& create) const {
    return std::string(durability_text(create.durability)) + own_intact_text(create.intact_since);
  }
  std::string operator()(const storage::JournalDurability& change) const {
    return fmt::format("{} from offset {}", durability_text(change.durability), change.disk_from);
  }
  std::string operator()(const storage::JournalDelete&) const { return {}; }
  std::string operator()(const storage::JournalSnapshot& snapshot) const {
    return fmt::format("{} partitions, generations from {} on, {}", snapshot.logs,
                       snapshot.first_generation, intact_text(snapshot.disk));
  }
  std::string operator()(const storage::JournalSnapshotLog& log) const {
    const auto& state = log.state;
    return fmt::format("{}  log start {}  end {}  durable {}  recovery point {}{}",
                       durability_text(state.durability), state.log_start, state.end, state.durable,
                       point_text(state.recovery_point),
                       state.cut ? "  cut to " + point_text(*state.cut) : std::string()) +
           own_intact_text(state.intact_since);
  }
  std::string operator()(const storage::JournalDiskChange& change) const {
    return intact_text(change.disk);
  }
};

Value entry_value(const storage::JournalEntry& entry) {
  return Value::object()
      .set("kind", storage::journal_entry_name(entry.content))
      .set("partition", entry.id.topic.is_zero() ? Value() : Value(entry.id.text()))
      .set("text", std::visit(ContentText{}, entry.content));
}

Value group_value(const Context& context, const std::string& path,
                  const storage::InspectedGroup& group) {
  Value entries = Value::array();
  for (const auto& entry : group.entries) entries.add(entry_value(entry));
  return Value::object()
      .set("schema", context.command.schema())
      .set("file", path)
      .set("position", group.position)
      .set("state", !group.entries_good               ? "bad_entry"
                    : !group.follows || group.skipped ? "does_not_follow"
                                                      : "good")
      .set("group", group.header.number)
      .set("generation", group.header.generation)
      .set("entries", std::move(entries));
}

[[noreturn]] void fail_unreadable(const std::string& path, const base::Error& error) {
  auto failure = make_failure(protocol::WireError::file_unreadable,
                              fmt::format("{} cannot be read", path), error.message());
  failure.item = path;
  throw Failed(std::move(failure));
}

std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// Whose journal lies in a directory, by its files.
std::optional<storage::JournalOwner> owner_of(base::FileSystem& files,
                                              const std::vector<std::string>& paths) {
  for (const auto& path : paths) {
    const auto none = [](const storage::InspectedGroup&) { return false; };
    const auto journal = storage::for_each_journal_group(files, path, none);
    if (!journal) continue;
    const auto& header = journal->header;
    return storage::JournalOwner{header.cluster, header.broker, header.disk, header.journal};
  }
  return std::nullopt;
}

}  // namespace

Flag journal_flag() {
  return {.name = "journal",
          .kind = Kind::text,
          .value = "PATH",
          .help = "where the disk's journal is, if broker.toml puts it elsewhere"};
}

std::string journal_elsewhere(const Context& context) {
  return context.args.has("journal") ? context.args.text("journal") : std::string();
}

std::vector<std::string> find_journal_files(base::FileSystem& files, const std::string& path) {
  if (storage::parse_journal_file_name(name_of(path))) return {path};
  std::vector<std::pair<std::uint64_t, std::string>> found;
  const auto entries = files.list_directory(path);
  if (!entries) return {};
  for (const auto& entry : *entries) {
    if (entry.is_directory || !storage::parse_journal_file_name(entry.name)) continue;
    const auto file = path + "/" + entry.name;
    const auto none = [](const storage::InspectedGroup&) { return false; };
    const auto journal = storage::for_each_journal_group(files, file, none);
    found.emplace_back(journal ? journal->header.generation : 0, file);
  }
  std::ranges::sort(found);
  std::vector<std::string> paths;
  paths.reserve(found.size());
  for (auto& [generation, file] : found) paths.push_back(std::move(file));
  return paths;
}

std::string journal_group_text(std::string_view file, const storage::InspectedGroup& group) {
  std::string text = fmt::format(
      "{} byte {}  group {}  generation {}  entries {}  bytes {}{}\n", file, group.position,
      group.header.number, group.header.generation, group.header.entries, group.header.body_bytes,
      group.follows && !group.skipped ? ""
                                      : "  (does not follow the one before: groups are missing)");
  for (const auto& entry : group.entries) {
    const auto content = std::visit(ContentText{}, entry.content);
    text += fmt::format("  {}{}{}{}\n", storage::journal_entry_name(entry.content),
                        entry.id.topic.is_zero() ? "" : "  " + entry.id.text(),
                        content.empty() ? "" : "  ", content);
  }
  if (!group.entries_good) text += "  an entry that cannot be read\n";
  return text;
}

bool dump_journal(Context& context, base::FileSystem& files, const std::string& path) {
  const bool jsonl = context.globals.form == Form::jsonl;
  auto& out = context.console.out;
  bool whole = true;
  const auto visit = [&](const storage::InspectedGroup& group) {
    whole = whole && group.follows && !group.skipped && group.entries_good;
    out.write(jsonl ? to_json(group_value(context, path, group)) + "\n"
                    : journal_group_text(name_of(path), group));
    return !context.console.interrupted() && !out.ended();
  };
  const auto journal = storage::for_each_journal_group(files, path, visit);
  if (!journal) fail_unreadable(path, journal.error());
  const bool never = journal->header.generation == 0;
  if (!jsonl)
    out.write(
        never ? fmt::format("{}  never used\n", name_of(path))
              : fmt::format("{} ends at byte {}: {}\n", name_of(path), journal->end, journal->why));
  return whole;
}

std::optional<JournalState> verify_journal(base::FileSystem& files, const std::string& path,
                                           const std::string& elsewhere) {
  JournalState state;
  auto place = storage::find_journal(files, path, elsewhere);
  if (place) {
    if (find_journal_files(files, place->directory).empty()) return std::nullopt;
  } else {
    const auto owner = owner_of(files, find_journal_files(files, path));
    if (!owner) return std::nullopt;
    place = {path, *owner};
  }
  state.directory = place->directory;
  for (int attempt = 0; attempt < kVerifyAttempts; ++attempt) {
    const auto replay = storage::replay_journal(files, place->directory, place->owner);
    if (!replay) fail_unreadable(state.directory, replay.error());
    state.files = replay->found.size();
    state.partitions = replay->logs.size();
    state.problem = replay->problem;
    if (state.problem.empty()) break;
  }
  return state;
}

}  // namespace mq::mqctl
