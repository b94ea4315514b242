#include "integration/faults/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>
#include <thread>

#include "integration/faults/loopback.h"

namespace mq::faults {

using namespace std::chrono_literals;

ChildProcess::ChildProcess(const std::vector<std::string>& command,
                           const std::string& output_file) {
  std::vector<char*> arguments;
  for (const auto& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("fork failed");
  if (pid_ > 0) return;
  // The child: only calls that are safe after fork.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int out = ::open(output_file.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  const int in = ::open("/dev/null", O_RDONLY);
  ::dup2(in, 0);
  ::dup2(out, 1);
  ::dup2(out, 2);
  for (int fd = 3; fd < 1024; ++fd) ::close(fd);
  ::execv(arguments[0], arguments.data());
  ::_exit(127);
}

ChildProcess::~ChildProcess() { kill_now(); }

void ChildProcess::signal(int number) const {
  if (!status_) ::kill(pid_, number);
}

std::optional<int> ChildProcess::wait(std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!status_) {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    } else if (std::chrono::steady_clock::now() >= deadline) {
      return std::nullopt;
    } else {
      std::this_thread::sleep_for(1ms);
    }
  }
  return status_;
}

bool ChildProcess::running() { return !wait(0ms).has_value(); }

void ChildProcess::kill_now() {
  signal(SIGCONT);
  signal(SIGKILL);
  (void)wait(30s);
}

int free_port() { return bind_loopback().port; }

}  // namespace mq::faults
