#include "integration/faults/broker_process.h"

#include <fmt/format.h>
#include <signal.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace mq::faults {

using namespace std::chrono_literals;

std::string program(const std::string& name) {
  const char* const folder = std::getenv("MQ_BIN");
  return (folder == nullptr ? std::string(MQ_BIN_DIR) : std::string(folder)) + "/" + name;
}

BrokerProcess::BrokerProcess(const std::string& extra) : extra_(extra), port_(free_port()) {
  write_config(port_);
}

void BrokerProcess::advertise(int port) { write_config(port); }

void BrokerProcess::write_config(int advertised) const {
  std::ofstream(config_file()) << fmt::format(
      "[broker]\nid = 1\nmetadata = \"local\"\n\n[[storage.disk]]\npath = "
      "\"{}\"\n\n[listener.clients]\n"
      "bind = \"127.0.0.1:{}\"\nadvertised = \"127.0.0.1:{}\"\n{}",
      data(), port_, advertised, extra_);
}

void BrokerProcess::start() {
  const auto before = starts();
  child_ = std::make_unique<ChildProcess>(
      std::vector<std::string>{program("mqbroker"), "--config", config_file()},
      dir_ / "broker.log");
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  while (starts() == before) {
    if (!child_->running() || std::chrono::steady_clock::now() > deadline)
      throw std::runtime_error("mqbroker did not start:\n" + log());
    std::this_thread::sleep_for(2ms);
  }
}

/// How often it has said that it is ready.
std::size_t BrokerProcess::starts() const {
  const std::string text = log();
  std::size_t count = 0;
  for (auto at = text.find(" ready in "); at != std::string::npos;
       at = text.find(" ready in ", at + 1))
    ++count;
  return count;
}

int BrokerProcess::stop() {
  child_->signal(SIGTERM);
  const auto code = child_->wait(30s);
  if (!code) throw std::runtime_error("mqbroker did not stop:\n" + log());
  return *code;
}

void BrokerProcess::pause() const { child_->signal(SIGSTOP); }
void BrokerProcess::resume() const { child_->signal(SIGCONT); }

std::string BrokerProcess::log() const {
  std::ostringstream text;
  text << std::ifstream(dir_ / "broker.log").rdbuf();
  return text.str();
}

}  // namespace mq::faults
