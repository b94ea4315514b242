#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/network.h"
#include "base/wait_list.h"
#include "model/ids.h"
#include "model/record_batch.h"
#include "net/frame_stream.h"
#include "protocol/alter_topics.h"
#include "protocol/fetch.h"
#include "protocol/hello.h"
#include "protocol/list_offsets.h"
#include "protocol/metadata.h"
#include "protocol/parts.h"
#include "protocol/produce.h"
#include "protocol/topics.h"
#include "storage/producer_table.h"

namespace mq::testing {

/// A broker for tests of the client: keeps batches in memory, checks them, obeys the order rule of
/// produce requests, and does what the script says. Runs on any runtime and network, simulated or
/// real. Stop it before it goes.
class FakeBroker {
 public:
  struct Partition {
    std::vector<std::string> batches;  ///< stamped
    std::int64_t end = 0;
    std::int64_t start = 0;
    std::uint64_t instance = 0;
    std::uint64_t connection = 0;
    std::uint64_t next_sequence = 0;
    std::shared_ptr<storage::ProducerTable> producers = std::make_shared<storage::ProducerTable>();
    std::int32_t leader = kWhoeverIsAsked;  ///< -1: none
    std::int32_t leader_epoch = 1;
  };
  static constexpr std::int32_t kWhoeverIsAsked = -2;
  struct Topic {
    std::string name;
    base::Uuid id;
    std::uint32_t batch_bytes_max = 1 << 20;
    std::vector<Partition> partitions;
    bool ready = true;  ///< has leaders
  };
  /// A batch that is about to be appended.
  struct Produced {
    std::string topic;
    std::int32_t partition = 0;
    std::uint64_t sequence = 0;
    std::size_t bytes = 0;
    int number = 0;  ///< counts all batches
  };

  /// What the brokers of a cluster share: the image and, as if it were replicated, the logs.
  struct Cluster {
    std::map<std::string, Topic> topics;
    std::map<std::int32_t, base::Endpoint> brokers;
    std::set<std::int32_t> away;
    std::int32_t controller = 1;
    std::uint64_t version = 0;
    std::uint64_t next_topic = 100;
    std::int32_t nearer = -1;           ///< leaders name it to clients that say where they are
    std::int64_t nearer_end = 1000000;  ///< it knows what lies below
  };
  using ClusterPtr = std::shared_ptr<Cluster>;

  FakeBroker(base::Runtime& runtime, base::Network& network, base::Endpoint at,
             base::Endpoint advertised);
  /// One broker of several; it joins the cluster's brokers.
  FakeBroker(base::Runtime& runtime, base::Network& network, base::Endpoint at,
             base::Endpoint advertised, ClusterPtr shared, std::int32_t id);
  ~FakeBroker();

  /// Where it listens, with the port it got.
  [[nodiscard]] base::Endpoint address() const { return acceptor_->local(); }
  Topic& add_topic(const std::string& name, int partitions,
                   std::uint32_t batch_bytes_max = 1 << 20);
  void remove_topic(const std::string& name) { cluster_->topics.erase(name); }
  Topic& topic(const std::string& name) { return cluster_->topics.at(name); }
  /// Puts a batch into the log as it is, beyond all checks.
  void inject(const std::string& topic, int partition, std::string batch, int records);
  /// The values of all records of a partition, in order.
  [[nodiscard]] std::vector<std::string> values(const std::string& topic, int partition);

  // The script.
  std::function<std::optional<protocol::Status>(const Produced&)>
      refuse;  ///< instead of the append
  std::function<bool(const Produced&)>
      lose;  ///< append, but break the connection before the answer
  std::function<std::optional<protocol::Status>(const std::string& topic)> refuse_fetch;
  std::function<std::optional<protocol::Status>()> refuse_metadata;
  std::function<std::optional<protocol::Status>()> refuse_init;
  std::function<std::optional<protocol::Status>()> refuse_offsets;
  bool silent = false;             ///< reads requests and answers none of them but Hello
  bool deaf = false;               ///< does not even answer Hello
  bool close_at_once = false;      ///< accepts and closes
  std::string greeting;            ///< sent instead of all that: another protocol
  bool mute = false;               ///< appends, and answers no produce
  base::Duration produce_delay{};  ///< before a produce is answered
  bool endless_metadata = false;   ///< each answer has frames without end
  int topics_ready_after = 0;      ///< metadata requests until a created topic has leaders
  std::int32_t broker_id = 1;
  base::Uuid cluster = base::Uuid::from_random(1, 2);

  /// As if a day had passed: nothing is known of any producer.
  void forget_producers();

  // What it saw.
  int accepted = 0;
  int produce_requests = 0;
  int produced_batches = 0;
  int fetch_requests = 0;
  int metadata_requests = 0;
  int init_requests = 0;
  int change_requests = 0;  ///< create, delete, alter, add
  int describe_requests = 0;
  int offset_requests = 0;
  std::vector<std::size_t> produce_entries;  ///< of each produce request
  std::vector<std::size_t> fetch_entries;    ///< of each fetch
  std::optional<protocol::AlterTopic> altered;
  int repeats = 0;
  std::vector<std::string> metadata_asked;  ///< topics of the newest such request
  std::uint64_t fetched_bytes = 0;

  /// Answers Metadata from the cluster as it is now, until thaw_image().
  void freeze_image() { frozen_ = std::make_shared<Cluster>(*cluster_); }
  void thaw_image();
  /// Tells brokers that wait for a newer image.
  void image_changed() { appended_.notify_all(); }
  void break_connections();
  asio::awaitable<void> stop();

 private:
  struct Connection;
  using ConnectionPtr = std::shared_ptr<Connection>;

  asio::awaitable<void> accept();
  asio::awaitable<void> serve(ConnectionPtr connection);
  asio::awaitable<void> write(ConnectionPtr connection);
  asio::awaitable<bool> handle(ConnectionPtr connection, net::Frame frame);
  void answer(Connection& connection, const protocol::FrameHead& request, const std::string& header,
              std::string payload = {}, bool more = false);
  void hello(Connection& connection, const net::Frame& frame);
  [[nodiscard]] const Cluster& image() const { return frozen_ ? *frozen_ : *cluster_; }
  [[nodiscard]] bool leads(const Partition& partition) const;
  asio::awaitable<void> metadata(ConnectionPtr connection, net::Frame frame);
  void answer_metadata(Connection& connection, const net::Frame& frame,
                       const protocol::MetadataRequest& request);
  /// Not ok when this broker is not the controller.
  [[nodiscard]] protocol::Status may_change() const;
  void alter_topics(Connection& connection, const net::Frame& frame);
  void add_partitions(Connection& connection, const net::Frame& frame);
  void list_topics(Connection& connection, const net::Frame& frame);
  void describe_topics(Connection& connection, const net::Frame& frame);
  void describe_broker(Connection& connection, const net::Frame& frame);
  void init_producer(Connection& connection, const net::Frame& frame);
  asio::awaitable<bool> produce(ConnectionPtr connection, net::Frame frame);
  protocol::ProduceResult append(Connection& connection, const protocol::ProduceEntry& entry,
                                 base::MutableBytes batch, bool& lost);
  asio::awaitable<void> fetch(ConnectionPtr connection, net::Frame frame);
  protocol::FetchResult read(const protocol::FetchEntry& entry, bool has_rack,
                             std::string& payload);
  static void look_up_time(const Partition& log, std::int64_t time_ms,
                           protocol::ListOffsetsResult& result);
  void list_offsets(Connection& connection, const net::Frame& frame);
  template <class Response, class Item, class Change>
  void change_each(Connection& connection, const net::Frame& frame, const std::vector<Item>& items,
                   Change change);
  void create_topics(Connection& connection, const net::Frame& frame);
  void delete_topics(Connection& connection, const net::Frame& frame);
  Topic* find(const base::Uuid& id);
  [[nodiscard]] bool knows(const model::PartitionId& partition) const;

  base::Runtime& runtime_;
  base::Endpoint advertised_;
  std::unique_ptr<base::Acceptor> acceptor_;
  ClusterPtr cluster_;
  ClusterPtr frozen_;
  std::vector<std::weak_ptr<Connection>> connections_;
  base::WaitList appended_;
  base::TaskGroup tasks_;
  bool stopped_ = false;
};

}  // namespace mq::testing
