#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "broker/broker.h"
#include "broker/worker.h"
#include "metadata/memory_store.h"
#include "net/frame_stream.h"
#include "protocol/api.h"
#include "protocol/fetch.h"
#include "protocol/hello.h"
#include "protocol/metadata.h"
#include "protocol/produce.h"
#include "protocol/topics.h"
#include "support/run.h"
#include "support/sim_disk_executor.h"
#include "support/sim_file_system.h"
#include "support/sim_network.h"
#include "support/sim_runtime.h"

namespace mq::testing {

/// What came back for one request, or as one frame.
struct Answer {
  protocol::FrameHead head;
  std::string header;
  std::vector<std::byte> payload;

  [[nodiscard]] base::Bytes header_bytes() const { return base::as_bytes(header); }
  /// The status that every answer begins with.
  [[nodiscard]] protocol::Status status() const;
};

/// A connection to the broker that sends what the test says, right or wrong.
class RawClient {
 public:
  RawClient(Simulator& simulator, std::unique_ptr<base::Stream> stream);

  void send_bytes(std::string_view bytes);
  /// Returns the correlation id.
  std::uint32_t send(protocol::ApiKey api, std::string_view header, std::string_view payload = {},
                     std::uint8_t flags = 0);
  std::uint32_t send_head(protocol::FrameHead head, std::string_view header,
                          std::string_view payload = {});
  /// The next frame; nothing when the broker closed the connection, or sent nothing for `limit`.
  std::optional<Answer> receive(base::Duration limit = std::chrono::seconds(120));
  /// Everything until the broker closes.
  std::string read_to_end();
  /// True if the broker closed within `limit`.
  bool closed_within(base::Duration limit);

  /// Preface and Hello; the answer.
  Answer hello(std::uint64_t instance = 1, std::uint64_t connection = 1);
  Answer call(protocol::ApiKey api, std::string_view header, std::string_view payload = {});
  void close() { stream_->close(); }

 private:
  asio::awaitable<bool> read_frame(std::shared_ptr<std::optional<Answer>> out);

  Simulator& simulator_;
  std::unique_ptr<base::Stream> stream_;
  net::FrameReader reader_;
  std::uint32_t next_correlation_ = 1;
};

/// One broker in a simulated world. Anything in `config` and `limits` may be changed before
/// start(). The disk and the metadata outlive a stop, so that start() can be called again.
class BrokerWorld {
 public:
  explicit BrokerWorld(std::uint64_t seed = 1, std::size_t workers = 1);
  ~BrokerWorld();

  base::Result<void> start();
  base::Result<void> stop();
  RawClient connect();
  /// One that has said Hello.
  RawClient client(std::uint64_t instance = 1, std::uint64_t connection = 1);
  /// Creates a topic and returns its id.
  base::Uuid create_topic(const std::string& name, std::int32_t partitions = 1,
                          const std::string& durability = "memory");
  std::int64_t counter(const std::string& name) const;
  void run_for(base::Duration span) { simulator.run_for(span); }

  Simulator simulator;
  SimFileSystem disk;
  SimNetwork network;
  SimRuntime client_runtime;
  std::vector<std::unique_ptr<SimRuntime>> runtimes;
  std::unique_ptr<base::Network> client_network;
  std::shared_ptr<metadata::MemoryStoreState> metadata =
      std::make_shared<metadata::MemoryStoreState>();
  SimDiskTimes disk_times;
  base::Counters counters;
  config::BrokerConfig config;
  broker::Limits limits;
  std::function<void(broker::BrokerParts&)> adjust;  // what start() is about to use
  std::unique_ptr<SimDiskExecutor> executor;
  std::unique_ptr<base::Network> broker_network;
  std::unique_ptr<broker::Broker> broker;

 private:
  asio::awaitable<base::Result<std::unique_ptr<metadata::MetadataStore>>> open_store();
};

/// One produced batch with `records` values of `bytes` bytes.
std::string make_batch(int records, std::size_t bytes = 100);

}  // namespace mq::testing
