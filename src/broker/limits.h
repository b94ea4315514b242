#pragma once

#include "base/runtime.h"
#include "config/broker_config.h"
#include "replication/isr.h"

namespace mq::broker {

/// What one worker and one connection may take. Every queue of the broker has its bound here.
struct Limits {
  /// Frames and headers of requests under way, per worker.
  std::size_t request_bytes = std::size_t{192} << 20;
  /// Batches on their way to slow readers, per worker.
  std::size_t answer_bytes = std::size_t{64} << 20;
  /// Frames above kHelloBytesFree from connections that have not said Hello, per worker.
  std::size_t hello_bytes = std::size_t{4} << 20;
  std::size_t connections = 10'000;    ///< over all workers
  std::size_t partitions = 1'000'000;  ///< of all topics

  // Per connection. While one of these is reached its socket is not read.
  std::size_t requests_in_flight = 256;
  std::size_t outbound_bytes = std::size_t{16} << 20;

  /// Data requests after which a connection may move to the worker that owns its partitions.
  std::size_t requests_before_move = 16;
  /// So long its reading may wait for what is under way to end; if it does not, it stays.
  base::Duration move_wait = std::chrono::seconds(1);

  base::Duration hello_timeout = std::chrono::seconds(10);  ///< connect to Hello
  base::Duration frame_timeout = std::chrono::seconds(30);  ///< first to last byte of a frame
  base::Duration write_timeout = std::chrono::seconds(30);  ///< an answer makes no way
  base::Duration idle_timeout = std::chrono::minutes(10);   ///< no request, none under way
  /// How long a connection that lost its framing is read and thrown away, so that the refusal
  /// reaches the peer before the reset does.
  base::Duration linger = std::chrono::milliseconds(500);

  std::size_t fetch_bytes = std::size_t{16} << 20;  ///< batches in one answer, whatever was asked
  base::Duration fetch_wait = std::chrono::seconds(60);
  base::Duration request_timeout = std::chrono::seconds(30);  ///< unless the request says less
  std::size_t entries_per_request = 16'384;

  /// Sent to replicas that are not in sync, all together; 0: as fast as they can.
  std::uint64_t catch_up_bytes_per_second = 0;

  /// When a follower of a partition led here is to leave the ISR.
  replication::IsrLimits isr;

  /// A stop waits this long for the controller to have partitions led elsewhere.
  base::Duration hand_over_timeout = std::chrono::seconds(5);
  /// A stop waits this long for requests under way, and so long for the disks.
  base::Duration drain_timeout = std::chrono::seconds(5);
  base::Duration disk_stop_timeout = std::chrono::seconds(60);

  /// Hellos up to this size are taken without asking a budget, so that no one who fills it keeps
  /// others out.
  static constexpr std::size_t kHelloBytesFree = 4096;
};

Limits limits_of(const config::BrokerConfig& config, std::size_t workers);

}  // namespace mq::broker
