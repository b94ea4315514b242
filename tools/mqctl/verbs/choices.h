#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mq/config.h"
#include "mqctl/cli/context.h"

namespace mq::mqctl {

/// Flags that several verbs share, and what their values mean.
/// The numbers of -p, in the order given; empty without it.
std::vector<std::int32_t> partition_numbers(const Context& context);
Flag acks_flag(std::string fallback);
Flag compression_flag(std::string fallback);
Acks acks_of(const std::string& name);
Compression compression_of(const std::string& name);

}  // namespace mq::mqctl
