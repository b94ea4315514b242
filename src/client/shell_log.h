#pragma once

#include "mq/config.h"

namespace mq::client {

/// Fills in what the application left open: a log that writes warnings and errors to standard
/// error.
void complete(ClientConfig& config);

/// The first problem of a configuration, with the others in its message; nothing to say is ok.
Result<void> check(const std::vector<Error>& problems);

}  // namespace mq::client
