#pragma once

#include <string>

#include "mqctl/cli/registry.h"

namespace mq::mqctl {

/// The list of commands below a noun, or of all of them for "".
std::string group_help(const std::string& group);
std::string command_help(const Command& command);
/// The shape of the command's JSON, with the type in place of each value.
std::string schema_text(const Command& command);

}  // namespace mq::mqctl
