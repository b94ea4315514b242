#pragma once

#include <string_view>

#include "base/result.h"
#include "model/ids.h"
#include "protocol/status.h"

namespace mq::controller {

/// The answer for a change that the metadata store kept from being made.
protocol::Status metadata_status(const base::Error& error, model::BrokerId broker);
}  // namespace mq::controller
