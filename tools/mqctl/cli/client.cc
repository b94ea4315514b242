#include "mqctl/cli/client.h"

#include <fmt/format.h>

namespace mq::mqctl {

ClientConfig client_config(const Context& context) {
  ClientConfig config;
  config.bootstrap = context.globals.brokers;
  config.client_id = fmt::format("mqctl {}", context.command.path);
  config.connect_timeout = context.globals.timeout;
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

std::string connect_failed(const Context& context) {
  return fmt::format("cannot connect to {}", fmt::join(context.globals.brokers, ", "));
}

Admin connect_admin(const Context& context) {
  return take(Admin::create(client_config(context)), connect_failed(context));
}

}  // namespace mq::mqctl
