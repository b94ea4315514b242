// Runs simulated worlds, seed after seed. A failing seed is printed with the command that replays
// it.
//
//   sim_test [--world NAME] [--seed N | --seeds COUNT | --seconds S] [--first N] [--mutant NAME]
//   [--trace]
//
// The environment gives defaults: MQ_SIM_SEED, MQ_SIM_SEEDS, MQ_SIM_SECONDS, MQ_SIM_FIRST.

#include <fmt/core.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutants.h"
#include "base/strings.h"
#include "sim/worlds.h"

namespace mq::sim {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::string world;                   // empty: all, in turn
  std::optional<std::uint64_t> seed;   // just this one
  std::optional<std::uint64_t> seeds;  // so many
  std::uint64_t seconds = 60;
  std::optional<std::uint64_t> first;  // default: from the clock, so that every run is a new one
  std::string mutant;
  bool trace = false;
};

std::optional<std::uint64_t> from_environment(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? std::nullopt : base::parse_unsigned(text);
}

[[noreturn]] void usage(std::string_view wrong) {
  fmt::print(stderr,
             "sim_test: {}\n  sim_test [--world NAME] [--seed N | --seeds COUNT | --seconds S] "
             "[--first N] [--mutant NAME] [--trace]\n",
             wrong);
  std::exit(2);
}

Options parse(const std::vector<std::string_view>& arguments) {
  Options options;
  options.seed = from_environment("MQ_SIM_SEED");
  options.seeds = from_environment("MQ_SIM_SEEDS");
  options.first = from_environment("MQ_SIM_FIRST");
  options.seconds = from_environment("MQ_SIM_SECONDS").value_or(options.seconds);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto flag = arguments[i];
    if (flag == "--trace") {
      options.trace = true;
      continue;
    }
    if (i + 1 == arguments.size()) usage(fmt::format("{} needs a value", flag));
    const auto value = arguments[++i];
    const auto number = base::parse_unsigned(value);
    if (flag == "--world") {
      options.world = value;
    } else if (flag == "--mutant") {
      options.mutant = value;
    } else if (!number) {
      usage(fmt::format("{} needs a number", flag));
    } else if (flag == "--seed") {
      options.seed = number;
    } else if (flag == "--seeds") {
      options.seeds = number;
      options.seed.reset();
    } else if (flag == "--seconds") {
      options.seconds = *number;
      options.seed.reset();
      options.seeds.reset();
    } else if (flag == "--first") {
      options.first = number;
    } else {
      usage(fmt::format("{} is no flag", flag));
    }
  }
  return options;
}

void print_failure(const Report& report, const Options& options) {
  fmt::print("{}\nFAILED: world {}, seed {}\n  {}\nreplay: sim_test --world {} --seed {}{}\n",
             report.trace, report.world, report.seed, report.violation, report.world, report.seed,
             options.mutant.empty() ? "" : " --mutant " + options.mutant);
}

int run(const Options& options) {
  std::vector<World> chosen;
  for (const auto& world : worlds()) {
    if (options.world.empty() || options.world == world.name) chosen.push_back(world);
  }
  if (chosen.empty()) usage(fmt::format("there is no world \"{}\"", options.world));
  std::optional<base::EnabledMutant> mutant;
  if (!options.mutant.empty()) mutant.emplace(options.mutant);

  const auto start = Clock::now();
  const std::uint64_t first = options.seed.value_or(options.first.value_or(
      static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count()) %
      1'000'000'000));
  const std::uint64_t count = options.seed ? 1 : options.seeds.value_or(UINT64_MAX);
  const bool timed = !options.seed && !options.seeds;
  std::uint64_t done = 0;
  Report total;
  for (; done < count; ++done) {
    if (timed && Clock::now() - start >= std::chrono::seconds(options.seconds)) break;
    for (const auto& world : chosen) {
      const Report report = world.run(first + done);
      if (!report.ok()) {
        print_failure(report, options);
        return 1;
      }
      if (options.trace) fmt::print("{}", report.trace);
      total.steps += report.steps;
      total.lives += report.lives;
      total.records += report.records;
      total.elections += report.elections;
      total.isr_shrinks += report.isr_shrinks;
      total.losses += report.losses;
    }
  }
  fmt::print(
      "{} seeds from {}: {} process lives, {} records or batches, {} changes of leaders, {} of "
      "ISRs that shrank, {} leaders that lacked records, {} steps in {:.1f} s; no promise broken\n",
      done, first, total.lives, total.records, total.elections, total.isr_shrinks, total.losses,
      total.steps, std::chrono::duration<double>(Clock::now() - start).count());
  return 0;
}

}  // namespace
}  // namespace mq::sim

int main(int argc, char** argv) { return mq::sim::run(mq::sim::parse({argv + 1, argv + argc})); }
