#pragma once

#include "base/network.h"

namespace mq::controller {

/// So many refusals, one after the other, say that the process behind an address is dead, and so
/// long is between them: one that lives and has only lost its connection is heard of meanwhile.
inline constexpr int kRefusalsOfTheDead = 3;
inline constexpr base::Duration kBetweenRefusals = std::chrono::milliseconds(100);

/// Whether the host itself says that nobody listens at `address`. A process that serves listens
/// there from before its registration until it has stopped serving. No answer, an unreachable host
/// and an unknown name prove nothing.
asio::awaitable<bool> refuses_connections(base::Network& network, base::Runtime& runtime,
                                          base::Endpoint address);

/// Whether somebody takes connections there; no answer within half a second is none.
asio::awaitable<bool> takes_connections(base::Network& network, base::Runtime& runtime,
                                        base::Endpoint address);

}  // namespace mq::controller
