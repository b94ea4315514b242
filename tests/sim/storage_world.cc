#include "sim/storage_world.h"

#include <memory>

#include "sim/storage_life.h"
#include "sim/violation.h"

namespace mq::sim {

Report run_storage_world(std::uint64_t seed) {
  Report report;
  report.world = "storage";
  report.seed = seed;
  auto machine = std::make_unique<StorageMachine>(seed);
  StorageLife* current = nullptr;
  machine->simulator.on_step([&machine, &current] {
    if (current == nullptr || !machine->violation.empty()) return;
    try {
      current->observe();
    } catch (const Violation& violation) {
      machine->fail(violation.what());
    }
  });
  const auto lives = machine->random.between(2, 8);
  for (; report.lives < lives && machine->violation.empty(); ++report.lives) {
    auto life = std::make_unique<StorageLife>(*machine);
    current = life.get();
    life->run();
    current = nullptr;
    if (!life->unwound()) (void)life.release();  // what still runs in it needs it
  }
  report.violation = machine->violation;
  report.trace_hash = machine->simulator.trace_hash();
  report.steps = machine->simulator.steps();
  report.records = machine->appended;
  report.trace = machine->simulator.recent_trace();
  if (!report.ok()) (void)machine.release();
  return report;
}

}  // namespace mq::sim
