#pragma once

#include <string>

#include "mq/config.h"
#include "mqctl/cli/registry.h"

namespace mq::mqctl {

/// Flags that several verbs share, and what their values mean.
Flag acks_flag(std::string fallback);
Flag compression_flag(std::string fallback);
Acks acks_of(const std::string& name);
Compression compression_of(const std::string& name);

}  // namespace mq::mqctl
