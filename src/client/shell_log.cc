#include "client/shell_log.h"

#include <cstdio>
#include <string>

namespace mq::client {

void complete(ClientConfig& config) {
  if (config.log) return;
  config.log = [](LogLevel level, std::string_view text) {
    if (level < LogLevel::warning) return;
    const std::string line = "mq: " + std::string(text) + "\n";
    std::fwrite(line.data(), 1, line.size(), stderr);
  };
}

Result<void> check(const std::vector<Error>& problems) {
  if (problems.empty()) return {};
  Error all = problems.front();
  for (std::size_t i = 1; i < problems.size(); ++i) all.message += "; " + problems[i].message;
  return all;
}

}  // namespace mq::client
