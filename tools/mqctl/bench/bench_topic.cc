#include "mqctl/bench/bench_topic.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include "mqctl/cli/client.h"

namespace mq::mqctl {
namespace {

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

}  // namespace

BenchTopic::BenchTopic(const Context& context, Admin& admin, const BenchOptions& options)
    : context_(context), admin_(admin) {
  if (options.topic) {
    name_ = *options.topic;
    return;
  }
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  name_ =
      fmt::format("mqctl-bench-{}-{:x}", ::getpid(), static_cast<std::uint64_t>(now) & 0xFFFFFF);
  NewTopic topic(name_);
  topic.partitions = options.partitions;
  topic.config["durability"] = options.durability;
  auto made = admin_.create_topics({topic});
  (void)take(std::move(made.at(name_)), "the benchmark did not run", name_);
  own_ = true;
}

BenchTopic::~BenchTopic() {
  if (!own_) return;
  const auto gone = admin_.delete_topics({name_});
  if (const auto& outcome = gone.at(name_); !outcome)
    context_.console.notice(fmt::format("topic {} was not deleted: {}; mqctl topic delete {}",
                                        name_, outcome.error().message, name_));
}

CpuSeconds cpu_now(Admin& admin) {
  CpuSeconds cpu;
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  cpu.client = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  for (auto& [id, broker] : admin.describe_brokers()) {
    if (!broker) throw_client(broker.error(), fmt::format("broker {} was not asked", id));
    cpu.brokers += std::chrono::duration<double>(broker->cpu_user + broker->cpu_system).count();
  }
  return cpu;
}

}  // namespace mq::mqctl
