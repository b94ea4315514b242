#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "mq/config.h"
#include "mq/record.h"
#include "mqctl/cli/context.h"

namespace mq::mqctl {

/// Flags that several verbs share, and what their values mean.
/// The numbers of -p, in the order given; empty without it.
std::vector<std::int32_t> partition_numbers(const Context& context);
/// "orders/3", or a usage failure.
TopicPartition partition_named(const std::string& text);
/// -c/--config NAME=VALUE, several times, and what was given.
Flag config_flag();
std::map<std::string, std::string> settings_of(const Context& context);
Flag acks_flag(std::string fallback);
Flag compression_flag(std::string fallback);
Acks acks_of(const std::string& name);
Compression compression_of(const std::string& name);

}  // namespace mq::mqctl
