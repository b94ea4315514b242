#pragma once

#include <string>
#include <string_view>

#include "base/network.h"
#include "base/result.h"
#include "mq/result.h"
#include "net/client_connection.h"
#include "protocol/status.h"

namespace mq::client {

/// An error of the table, with its hint and flags.
Error make_error(Errc code, std::string message, std::string where = {});

/// What a broker said; a code this release does not know keeps the flags that came with it.
Error from_status(const protocol::Status& status, const std::string& where);

/// What ended a request or a connection: base, frame, model or connection errors.
Error from_transport(const base::Error& error, const std::string& where);

/// Why a broker could not be connected to; `what` is its address with what is known about it.
Error from_connect_failure(const net::ConnectFailure& failure, const std::string& what);

}  // namespace mq::client
