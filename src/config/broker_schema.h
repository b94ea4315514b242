#pragma once

#include <vector>

#include "config/config_key.h"

namespace mq::config {

/// All keys, in the order in which they are shown.
const std::vector<ConfigKey>& broker_schema();
const ConfigKey* find_key(std::string_view name);

/// "broker", "storage.disk", ... in order. A section that holds only other sections ("storage") is
/// one of them too.
const std::vector<std::string>& broker_sections();
/// The section whose tables are written with two brackets, one for each element.
inline constexpr std::string_view kDiskSection = "storage.disk";

}  // namespace mq::config
