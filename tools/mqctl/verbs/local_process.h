#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "mqctl/cli/context.h"

namespace mq::mqctl {

/// The first of these ports of 127.0.0.1 that nobody listens on; 0 when all are taken.
std::uint16_t free_port(std::uint16_t first, std::uint16_t last);
bool is_free(std::uint16_t port);

/// A program beside this one, as built and as installed, or in the PATH; empty: none.
std::filesystem::path find_program(const Console& console, const std::string& name);

/// Starts a program in a session of its own, so that it outlives this one and the terminal; its
/// output goes to `log`, which begins anew. Throws Failed.
pid_t spawn(const std::vector<std::string>& words, const std::filesystem::path& log);

enum class Started { ready, ended, silent };
/// Asks `ready` until it says yes, the process ends, or the time or the patience at the terminal is
/// over: then it is ended.
Started wait_until_ready(const Context& context, pid_t process, std::chrono::seconds limit,
                         const std::function<bool()>& ready);

/// SIGTERM, then waits until `gone`; false when it is still there after `limit`.
bool end_process(const Context& context, pid_t process, const std::string& name,
                 std::chrono::seconds limit, const std::function<bool()>& gone);

}  // namespace mq::mqctl
