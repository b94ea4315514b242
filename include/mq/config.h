#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "mq/export.h"
#include "mq/result.h"

namespace mq {
inline namespace v1 {

using Duration = std::chrono::milliseconds;
using Timestamp = std::chrono::sys_time<Duration>;

enum class LogLevel : std::uint8_t { debug, info, warning, error };

/// What producers, consumers and admins have in common. A plain value: change it freely before
/// create().
struct MQ_EXPORT ClientConfig {
  /// "host", "host:port", "[v6]:port" of one or more brokers; port 9500 if none is given. The rest
  /// of the cluster is found from the first that answers.
  std::vector<std::string> bootstrap{"127.0.0.1:9500"};
  /// For the brokers' logs; at most 128 bytes.
  std::string client_id;
  /// How long create() looks for a broker that answers.
  Duration connect_timeout{10'000};
  /// How long one request may stay unanswered before its connection is given up.
  Duration request_timeout{30'000};
  /// Receives this client's log lines, one call at a time, from its I/O thread or from within a
  /// call of the client; must not call the client. Empty: warnings and errors go to standard error.
  /// An exception from it is swallowed.
  std::function<void(LogLevel, std::string_view)> log;

  /// Every problem at once; empty when all is well. create() calls it.
  [[nodiscard]] std::vector<Error> validate() const;
};

/// When a produced record counts as delivered. What each survives depends on the topic's
/// durability, see README.
enum class Acks : std::uint8_t {
  none,    ///< sent: no answer, so no offset and no news of a refusal
  leader,  ///< the partition's leader has it
  all,     ///< all in-sync replicas have it
};
/// What send() does while the buffer is full.
enum class OnFull : std::uint8_t {
  block,  ///< wait for room, at most delivery_timeout
  fail,   ///< return queue_full at once
};
enum class Compression : std::uint8_t { none, lz4, zstd };

struct DeliveryRange;

struct MQ_EXPORT ProducerConfig : ClientConfig {
  Acks acks = Acks::all;
  /// How long a record may wait for company while requests are under way. A producer with nothing
  /// under way sends at once, whatever this says.
  Duration linger{5};
  /// From send() to the record's result, retries included. An idempotent producer stops repeating
  /// what may have been stored after five minutes in any case: for so long leaders surely know it.
  Duration delivery_timeout{120'000};
  /// How long the destructor waits for results before it fails what is left.
  Duration close_timeout{30'000};
  /// Bytes of accepted records without a result.
  std::size_t buffer_bytes = std::size_t{64} << 20;
  /// A batch is sent when the next record would make it larger, before compression. At most what
  /// the topic takes.
  std::size_t batch_bytes = std::size_t{1} << 20;
  /// A retry never stores a batch twice: each carries the producer's id and a sequence by which the
  /// leader knows it again. Not with Acks::none, which asks for no answers and so repeats nothing.
  /// false: order is not kept. A retry may store records once more, behind newer ones that were
  /// under way with them, so that consumers see 1 2 3 1 2 3 4; whoever waits for the result of each
  /// record before the next one to its partition gets at most 1 1 2 2.
  bool enable_idempotence = true;
  OnFull on_full = OnFull::block;
  Compression compression = Compression::lz4;
  /// Results of the records that were sent through a TopicHandle, in ranges: one call per batch, in
  /// order per partition, on the callback thread. May be empty.
  std::function<void(const DeliveryRange&)> on_delivery;

  [[nodiscard]] std::vector<Error> validate() const;
};

/// What poll() does at an offset that the partition does not have (any more, or yet).
enum class OnOutOfRange : std::uint8_t { fail, earliest, latest };

struct MQ_EXPORT ConsumerConfig : ClientConfig {
  /// Most records in one Batch.
  std::size_t max_poll_records = 2'000;
  /// Asked of a broker at a time, all partitions together. A record larger than this is delivered
  /// all the same.
  std::size_t fetch_bytes = (std::size_t{2} << 20) - (std::size_t{16} << 10);
  /// Fetched ahead while the application works; at least one fetch.
  std::size_t prefetch_bytes = std::size_t{8} << 20;
  /// How long a broker holds a fetch that finds nothing.
  Duration fetch_wait{500};
  OnOutOfRange on_out_of_range = OnOutOfRange::fail;
  /// Where the application runs, as `broker.rack` names it: partitions are read from a replica
  /// there, if one is in sync, else from their leaders. Records come a little later from it, up to
  /// half a second when little is written. Empty: from the leaders.
  std::string rack;

  [[nodiscard]] std::vector<Error> validate() const;
};

}  // namespace v1
}  // namespace mq
