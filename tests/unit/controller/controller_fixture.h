#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "controller/controller.h"
#include "metadata/memory_store.h"
#include "support/run.h"
#include "support/sim_runtime.h"

namespace mq::testing {

/// The disk of a broker that keeps only names: which topics have logs. It survives the process.
struct FakeDisk {
  std::set<base::Uuid> topics;
  base::Error open_error;    ///< what opening answers; empty: it works
  base::Error delete_error;  ///< what deleting answers
  base::Error postpones;     ///< an error of deleting that only the next start can mend
  base::Duration delete_time = std::chrono::milliseconds(1);
  int opens = 0;
  int deletes = 0;
  std::function<void()> on_open;  ///< called when an opening begins; may be empty
};

class FakeReplicas final : public controller::LocalReplicas {
 public:
  FakeReplicas(FakeDisk& disk, base::Runtime& runtime) : disk_(disk), runtime_(runtime) {}
  asio::awaitable<base::Result<void>> open_topic(metadata::TopicPtr topic) override;
  asio::awaitable<void> stop_topic(base::Uuid topic) override;
  asio::awaitable<base::Result<void>> delete_topic(base::Uuid topic) override;
  [[nodiscard]] bool waits_for_start(const base::Error& error) const override {
    return error && error == disk_.postpones;
  }

 private:
  FakeDisk& disk_;
  base::Runtime& runtime_;
};

/// One process: store session, replicas, controller.
struct ControllerProcess {
  ControllerProcess(base::Runtime& runtime, std::shared_ptr<metadata::MemoryStoreState> state,
                    FakeDisk& disk, std::uint64_t incarnation, base::Duration latency);
  std::unique_ptr<metadata::MetadataStore> store;
  FakeReplicas replicas;
  controller::Controller controller;
};

class ControllerFixture : public ::testing::Test {
 public:
  ~ControllerFixture() override { stop(); }

  /// A new process on the same metadata and disk: start() and finish_half_done().
  base::Error start();
  void stop();
  controller::Controller& controller() { return process_->controller; }

  protocol::TopicResult create(protocol::NewTopic topic, bool validate_only = false);
  protocol::TopicResult create(const std::string& name, std::int32_t partitions = -1);
  /// Until the files of deleted topics are gone or have failed to go.
  void wait_for_files();
  /// Waits for the files too.
  protocol::TopicResult remove(const std::string& name);
  metadata::TopicPtr topic(const std::string& name) {
    return controller().image()->find_topic(name);
  }

  template <class T>
  T run(asio::awaitable<T> task) {
    return mq::testing::run(simulator_, std::move(task));
  }
  base::TimePoint in(base::Duration span) { return runtime_.now() + span; }
  /// Paths of the metadata below `prefix`.
  std::vector<std::string> paths(const std::string& prefix) const;
  /// What must hold when nothing is under way: every topic has its nodes and its logs, and nothing
  /// else has any.
  void expect_consistent();

  Simulator simulator_{1};
  SimRuntime runtime_{simulator_};
  std::shared_ptr<metadata::MemoryStoreState> state_ =
      std::make_shared<metadata::MemoryStoreState>();
  FakeDisk disk_;
  base::Duration latency_{0};
  std::uint64_t incarnations_ = 0;
  std::unique_ptr<ControllerProcess> process_;
};

}  // namespace mq::testing
