#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>

#include "base/log.h"
#include "base/real/posix_file_system.h"
#include "base/real/standard_streams.h"
#include "broker/daemon.h"
#include "broker/exit_status.h"
#include "broker/service_manager.h"
#include "broker/start_checks.h"
#include "broker/version.h"
#include "config/broker_config.h"

extern char** environ;  // environ(7)

namespace {

using namespace mq;  // NOLINT: the program's own file

struct Options {
  std::string config_file;
  std::vector<std::string> set;
  bool check = false;
  bool version = false;
  bool mounts = false;
};

config::ConfigSources sources_of(const Options& options) {
  config::ConfigSources sources;
  sources.file = options.config_file;
  sources.flags = options.set;
  for (char** variable = environ; variable && *variable; ++variable) {
    const std::string_view text(*variable);
    const auto equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    sources.environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return sources;
}

int refuse_config(const config::LoadedConfig& loaded) {
  // In the journal they are errors, sd-daemon(3); elsewhere just text.
  const char* priority = broker::ServiceManager::logs_to_journal() ? "<3>" : "";
  for (const auto& error : loaded.errors)
    std::fprintf(stderr, "%s%s\n", priority, error.text().c_str());
  return broker::kExitConfig;
}

int check(const config::LoadedConfig& loaded) {
  if (!loaded.ok()) return refuse_config(loaded);
  std::fputs(config::render_effective_config(loaded.settings).c_str(), stdout);
  for (const auto& warning : loaded.warnings)
    std::fprintf(stderr, "warning: %s\n", warning.c_str());
  return std::fflush(stdout) == 0 ? broker::kExitOk : broker::kExitFailed;
}

/// For the service manager, which can look from outside of the service's sandbox.
int print_mounts(const config::LoadedConfig& loaded) {
  if (!loaded.ok()) return refuse_config(loaded);
  std::fputs(broker::mount_lines(loaded.config.disks).c_str(), stdout);
  return std::fflush(stdout) == 0 ? broker::kExitOk : broker::kExitFailed;
}

int run(const Options& options) {
  if (options.version) {
    std::printf("mqbroker %s\n", std::string(broker::kVersion).c_str());
    return broker::kExitOk;
  }
  if (options.config_file.empty()) {
    std::fputs("mqbroker: --config FILE is needed; see mqbroker --help\n", stderr);
    return broker::kExitUsage;
  }
  base::PosixFileSystem files;
  auto loaded = config::load_broker_config(files, sources_of(options));
  if (options.check) return check(loaded);
  if (options.mounts) return print_mounts(loaded);
  if (!loaded.ok()) return refuse_config(loaded);
  base::LogConfig log;
  log.level = loaded.config.log_level;
  log.timestamps = !broker::ServiceManager::logs_to_journal();
  base::configure_log(log);
  return broker::Daemon(std::move(loaded), options.config_file).run();
}

}  // namespace

int main(int argc, char** argv) {
  base::claim_standard_streams();
  Options options;
  CLI::App app{"The mq broker: keeps topics as partitioned, append-only logs and serves them."};
  app.name("mqbroker");
  app.add_option("--config", options.config_file, "Configuration file (broker.toml)");
  app.add_option("--set", options.set, "One setting over the file, as broker.id=1; may be repeated")
      ->allow_extra_args(false);
  app.add_flag("--check", options.check,
               "Check the configuration, print every value in force with its origin, and exit");
  app.add_flag(
      "--mounts", options.mounts,
      "Print the mount of each data directory, as a service gets it in the file MQ_MOUNTS, "
      "and exit");
  app.add_flag("--version", options.version, "Print the version and exit");
  app.footer(
      "Exit status: 0 stopped as asked, 1 failed, 64 wrong command line, 78 wrong configuration.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? broker::kExitOk : broker::kExitUsage;
  }
  try {
    return run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mqbroker: %s\n", error.what());
    return broker::kExitFailed;
  }
}
