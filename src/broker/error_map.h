#pragma once

#include "base/result.h"
#include "protocol/wire_error.h"

namespace mq::broker {

/// The wire error of an error of any folder below. One switch per folder without a default, so that
/// a new code does not compile unmapped.
protocol::WireError to_wire(const base::Error& error) noexcept;

}  // namespace mq::broker
