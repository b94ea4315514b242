#pragma once

#include <string_view>

#include "mq/version.h"

namespace mq::broker {

inline constexpr std::string_view kVersion = MQ_VERSION_TEXT;

}  // namespace mq::broker
