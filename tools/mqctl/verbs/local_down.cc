#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "mqctl/cli/report.h"
#include "mqctl/verbs/local_process.h"
#include "mqctl/verbs/local_state.h"
#include "mqctl/verbs/verbs.h"

namespace mq::mqctl {
namespace {

constexpr std::chrono::seconds kStopLimit{30};

/// Asks it to stop in order and waits until its process is gone.
void stop(const Context& context, const LocalProcess& process, bool alone) {
  const bool gone = end_process(context, process.process_id, process.name(), kStopLimit,
                                [&] { return !process.running(); });
  if (gone) return;
  throw Failed(make_failure(
      protocol::WireError::timed_out,
      alone ? "the local broker is still stopping"
            : fmt::format("{} is still stopping", process.name()),
      fmt::format("process {} is there after {} s", process.process_id, kStopLimit.count()),
      fmt::format("look at {}", process.log().string())));
}

Exit down(Context& context) {
  const LocalState state(context.console);
  auto processes = state.running();
  if (processes.empty()) {
    state.forget();
    auto failure = make_failure(protocol::WireError::unreachable, "no local broker is up",
                                fmt::format("nothing runs for {}", state.folder().string()),
                                "mqctl local up starts one");
    context.report(failure);
    return Exit::not_found;
  }
  // Brokers leave the cluster in order while their ZooKeeper is still there.
  std::ranges::stable_sort(processes, std::greater<>(), &LocalProcess::broker);
  const bool alone = processes.size() == 1 && processes[0].folder == state.folder();
  for (const auto& process : processes) stop(context, process, alone);
  state.forget();
  Report report(context);
  const auto bytes = state.data_bytes();
  for (const auto& process : processes) {
    report.item(Value::object()
                    .set("state", "down")
                    .set("broker", process.is_zookeeper() ? Value() : Value(process.broker))
                    .set("address", process.address)
                    .set("process_id", process.process_id)
                    .set("folder", process.folder.string())
                    .set("bytes", bytes));
    if (!alone) report.text(fmt::format("{} at {} has stopped\n", process.name(), process.address));
  }
  if (alone) {
    report.text(fmt::format("broker 1 at {} has stopped; its data stays in {} ({})\n",
                            processes[0].address, state.folder().string(),
                            base::format_bytes(bytes)));
  } else {
    report.text(fmt::format("the data stays in {} ({})\n", state.folder().string(),
                            base::format_bytes(bytes)));
  }
  report.text(fmt::format("  mqctl local up{} brings it back; rm -r {} removes it\n",
                          alone ? "" : fmt::format(" -n {}", state.cluster_size()),
                          state.folder().string()));
  return report.finish();
}

}  // namespace

Command local_down_command() {
  return {.path = "local down",
          .summary = "Stops what local up started; its data stays",
          .examples = {"mqctl local down"},
          .item_shape = R"({"state":"down","broker":"int|null","address":"string",)"
                        R"("process_id":"int","folder":"string","bytes":"int"})",
          .changes = true,
          .run = down};
}

}  // namespace mq::mqctl
