#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "base/real/standard_streams.h"
#include "mqctl/cli/run.h"

namespace {

std::atomic<bool> interrupted{false};

/// The first signal asks the command to end in order; the second ends it at once.
extern "C" void on_signal(int) {
  if (interrupted.exchange(true)) ::_exit(130);
}

/// Without SA_RESTART, so that a read of the terminal or of a pipe ends too.
void catch_signals() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

std::optional<std::string> environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): nobody sets it
  if (value == nullptr) return std::nullopt;
  return value;
}

}  // namespace

int main(int argc, char** argv) {
  mq::base::claim_standard_streams();
  catch_signals();
  mq::mqctl::FdOutput out(STDOUT_FILENO);
  mq::mqctl::FdOutput err(STDERR_FILENO);
  mq::mqctl::FdInput in(STDIN_FILENO);
  mq::mqctl::Console console{out, err, in};
  console.in_is_terminal = ::isatty(STDIN_FILENO) == 1;
  console.out_is_terminal = ::isatty(STDOUT_FILENO) == 1;
  console.err_is_terminal = ::isatty(STDERR_FILENO) == 1;
  console.env = environment;
  console.interrupted = [] { return interrupted.load(std::memory_order_relaxed); };
  try {
    const std::vector<std::string> words(argv + 1, argv + argc);
    return mq::mqctl::run(words, console);
  } catch (const std::exception& failed) {
    std::fprintf(stderr, "error: %s [INTERNAL]\n", failed.what());
    return 1;
  }
}
