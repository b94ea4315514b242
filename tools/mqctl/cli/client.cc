#include "mqctl/cli/client.h"

#include <fmt/format.h>

namespace mq::mqctl {

ClientConfig client_config(const Context& context) {
  ClientConfig config;
  config.bootstrap = context.globals.brokers;
  config.client_id = fmt::format("mqctl {}", context.command.path);
  config.connect_timeout = context.globals.connect_timeout;
  config.request_timeout = context.globals.timeout;
  const Console* console = &context.console;
  const bool verbose = context.globals.verbose;
  config.log = [console, verbose](LogLevel, std::string_view line) {
    if (verbose) console->notice(line);
  };
  return config;
}

void throw_client(const Error& error, std::string what, std::string item) {
  throw Failed(client_failure(error, std::move(what), std::move(item)));
}

void throw_not_connected(const Context& context, const Error& error) {
  auto failure = client_failure(
      error, fmt::format("cannot connect to {}", fmt::join(context.globals.brokers, ", ")));
  if (error.code == Errc::unreachable)
    failure.hint = "-b HOST:PORT names another broker; mqctl local up starts one here";
  throw Failed(std::move(failure));
}

Admin connect_admin(const Context& context) {
  return connected(context, Admin::create(client_config(context)));
}

}  // namespace mq::mqctl
