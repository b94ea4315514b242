#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "client/core/client_core.h"
#include "client/core/fetch_buffer.h"
#include "client/core/rerun.h"
#include "protocol/fetch.h"

namespace mq::client {

/// Keeps a fetch out for every partition that is read, as long as the buffer has room: per broker
/// one long poll over all partitions that were ready at the same time. Asked are the leaders, or
/// replicas in the client's rack that they name; whatever such a one does not have or say is asked
/// of the leader again, which alone can say what is out of range. On the client's runtime;
/// trouble() from any thread.
class Fetcher {
 public:
  Fetcher(ClientCore& core, const ConsumerConfig& config, FetchBuffer& buffer);
  ~Fetcher();

  /// Looks whether something can be fetched. Called after assign, seek, resume and when there is
  /// room again.
  void wake();
  void stop() { stopped_ = true; }
  /// Why nothing comes at present, if there is a reason.
  [[nodiscard]] std::optional<Error> trouble() const;
  /// What was wrong with the partitions read before does not concern the new ones.
  void forget_trouble() { set_trouble(std::nullopt); }

 private:
  struct Asked {
    ReadPartitionPtr partition;
    std::uint64_t generation = 0;
    std::int64_t offset = 0;
    bool answered = false;
    bool of_leader = true;
  };
  struct Fetch {
    std::string where;
    std::map<model::PartitionId, Asked> asked;
  };
  using FetchPtr = std::shared_ptr<Fetch>;

  void wake_once();
  void fetch(std::int32_t broker, std::span<const ReadPartitionPtr> partitions);
  void answered(const FetchPtr& fetch, base::Result<net::Frame> frame);
  void ended(const FetchPtr& fetch);
  void take(const FetchPtr& fetch, const net::Frame& frame);
  void take_data(Asked& asked, FetchedChunk chunk, const std::string& where);
  void refused(Asked& asked, const protocol::FetchResult& result, const std::string& where);
  [[nodiscard]] std::int32_t broker_for(ReadPartition& partition);
  void go_to(ReadPartition& partition, std::int32_t replica);
  void back_to_leader(ReadPartition& partition);
  void back_off(ReadPartition& partition);
  void wake_at(base::TimePoint due);
  void set_trouble(std::optional<Error> error);

  ClientCore& core_;
  const ConsumerConfig& config_;
  FetchBuffer& buffer_;
  base::Runtime::TimerId wake_timer_ = 0;
  base::TimePoint wake_due_ = base::TimePoint::max();
  Rerun waking_;
  bool stopped_ = false;
  mutable std::mutex mutex_;  // guards trouble_
  std::optional<Error> trouble_;
};

}  // namespace mq::client
