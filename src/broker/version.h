#pragma once

#include <string_view>

namespace mq::broker {

/// Of the release, from the build.
inline constexpr std::string_view kVersion = MQ_VERSION;

}  // namespace mq::broker
