#pragma once

#include <string>
#include <vector>

#include "mqctl/cli/context.h"
#include "mqctl/cli/registry.h"
#include "storage/journal_inspect.h"

namespace mq::mqctl {

/// --journal PATH: where the disk's journal is, if broker.toml puts it elsewhere.
Flag journal_flag();
/// What it says; empty: nothing.
std::string journal_elsewhere(const Context& context);

/// The journal files that a path given to `mqctl log` names: one, or those of a directory in order
/// of use. Empty: it names something else.
std::vector<std::string> find_journal_files(base::FileSystem& files, const std::string& path);

/// A group and below it its entries, a line each.
std::string journal_group_text(std::string_view file, const storage::InspectedGroup& group);

/// Prints the groups of one file and where they end. False: there is damage in the middle.
bool dump_journal(Context& context, base::FileSystem& files, const std::string& path);

/// What is to be said of a journal as a whole.
struct JournalState {
  std::string directory;
  std::size_t files = 0;
  std::size_t partitions = 0;
  std::string problem;  ///< empty: whole
};
/// Reads the journal of the data directory at `path`, which may lie `elsewhere`, or the journal
/// directory `path`. Nothing: it is neither, or the journal is not there.
std::optional<JournalState> verify_journal(base::FileSystem& files, const std::string& path,
                                           const std::string& elsewhere);

}  // namespace mq::mqctl
