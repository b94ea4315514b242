#pragma once

#include <span>
#include <string>
#include <vector>

#include "mqctl/cli/context.h"

namespace mq::mqctl {

/// Which command a line means, with the flags before it moved behind it.
struct Selection {
  const Command* command = nullptr;  ///< nothing: help about `group` was asked for
  std::string group;                 ///< "" is the whole program
  bool help = false;
  std::vector<std::string> rest;
};

/// Words up to the verb. Throws Failed: USAGE with the nearest verb, NOT_AVAILABLE for a verb of a
/// later release. No words at all mean `status`.
Selection select_command(std::span<const std::string> words);

/// Splits and checks the flags of one command. Throws Failed (USAGE, NOT_AVAILABLE).
Arguments parse_arguments(const Command& command, const std::vector<std::string>& rest);

/// Flag > environment > default. Throws Failed.
Globals resolve_globals(const Command& command, const Arguments& arguments, const Console& console);

/// The output form asked for, as far as it can be seen in a line that may not parse: usage errors
/// keep to it as well.
Form guess_form(std::span<const std::string> words, const Console& console);

}  // namespace mq::mqctl
