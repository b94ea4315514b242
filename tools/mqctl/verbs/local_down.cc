#include <fmt/format.h>
#include <signal.h>

#include <cerrno>
#include <thread>

#include "base/units.h"
#include "mqctl/cli/report.h"
#include "mqctl/verbs/local_state.h"
#include "mqctl/verbs/verbs.h"

namespace mq::mqctl {
namespace {

/// Asks the broker to stop in order and waits until its process is gone.
bool stop(const Context& context, const LocalState& state, const LocalBroker& broker) {
  ::kill(broker.process_id, SIGTERM);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  bool told = false;
  const auto start = std::chrono::steady_clock::now();
  while (state.running()) {
    const auto now = std::chrono::steady_clock::now();
    if (now > deadline || context.console.interrupted()) return false;
    if (!told && now - start > std::chrono::seconds(3)) {
      told = true;
      context.notice(fmt::format("waiting for broker process {} to stop", broker.process_id));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

Exit down(Context& context) {
  const LocalState state(context.console);
  const auto broker = state.running();
  if (!broker) {
    state.forget();
    auto failure = make_failure(protocol::WireError::unreachable, "no local broker is up",
                                fmt::format("nothing runs for {}", state.folder().string()),
                                "mqctl local up starts one");
    context.report(failure);
    return Exit::not_found;
  }
  if (!stop(context, state, *broker))
    throw Failed(make_failure(protocol::WireError::timed_out, "the local broker is still stopping",
                              fmt::format("process {} is there after 30 s", broker->process_id),
                              fmt::format("look at {}", state.log().string())));
  state.forget();
  Report report(context);
  const auto bytes = state.data_bytes();
  report.item(Value::object()
                  .set("state", "down")
                  .set("address", broker->address)
                  .set("process_id", broker->process_id)
                  .set("folder", state.folder().string())
                  .set("bytes", bytes));
  report.text(
      fmt::format("broker 1 at {} has stopped; its data stays in {} ({})\n"
                  "  mqctl local up brings it back; rm -r {} removes it\n",
                  broker->address, state.folder().string(), base::format_bytes(bytes),
                  state.folder().string()));
  return report.finish();
}

}  // namespace

Command local_down_command() {
  return {.path = "local down",
          .summary = "Stops the broker that local up started; its data stays",
          .examples = {"mqctl local down"},
          .item_shape = R"({"state":"down","address":"string","process_id":"int",)"
                        R"("folder":"string","bytes":"int"})",
          .changes = true,
          .run = down};
}

}  // namespace mq::mqctl
