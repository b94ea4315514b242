#pragma once

#include <memory>
#include <string>
#include <utility>

#include "base/wait_list.h"
#include "storage/partition_log.h"

namespace mq::testing {

/// What logs in memory have in common: a name, settings, one size; a test makes them fail.
class MemoryLog : public storage::PartitionLog {
 public:
  MemoryLog() {
    id_.topic = base::Uuid::from_random(1, 2);
    id_.partition = 0;
  }

  const model::PartitionId& id() const override { return id_; }
  const std::string& topic_name() const override { return name_; }
  using PartitionLog::append;
  base::Result<storage::AppendInfo> append(base::Buffer owner, base::MutableBytes batch) override {
    MQ_TRY(const auto parsed, model::parse_produced(batch, 1 << 20));
    return append(std::move(owner), batch, parsed);
  }
  void on_changed(std::function<void()> changed) override { changed_ = std::move(changed); }
  base::Error failure() const override { return failure_; }
  void set_settings(const model::TopicSettings& settings) override { settings_ = settings; }
  const model::TopicSettings& settings() const override { return settings_; }
  std::uint64_t bytes_on_disk() const override { return 0; }
  std::uint32_t segments() const override { return 1; }

  // What a test does to it.
  void fail(base::Error error) {
    failure_ = error;
    changed();
  }
  void refuse_next_append(base::Error error) { next_append_error_ = error; }
  void set_partition(std::int32_t number) { id_.partition = number; }

 protected:
  void changed() const {
    if (changed_) changed_();
  }
  /// Why the next append is refused; not again after that unless the log has failed.
  base::Error take_refusal() {
    return failure_ ? failure_ : std::exchange(next_append_error_, base::Error());
  }

 private:
  model::PartitionId id_;
  std::string name_ = "topic";
  model::TopicSettings settings_;
  base::Error next_append_error_;
  base::Error failure_;
  std::function<void()> changed_;
};

}  // namespace mq::testing
