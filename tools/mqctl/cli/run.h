#pragma once

#include <span>
#include <string>

#include "mqctl/cli/console.h"

namespace mq::mqctl {

/// One whole command line, without the program's name. The exit code is that of `Exit`.
int run(std::span<const std::string> words, Console& console);

}  // namespace mq::mqctl
