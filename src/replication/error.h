#pragma once

#include "base/result.h"

namespace mq::replication {

using base::Error;
using base::Result;

enum class ReplicationErrc {
  /// The batch before this one of the same connection was not appended, so this one was not either.
  out_of_order = 1,
  /// A newer connection of this client has appended already.
  stale_connection,
  /// The offset lies above the high watermark or below the log start.
  offset_out_of_range,
  /// Appended, but not confirmed before the caller's deadline.
  timed_out,
  /// The partition is being deleted or its broker stops.
  closed,
  /// The leader epoch changed between the append and its confirmation.
  epoch_changed,
  /// The partition broke one of its own rules and serves no more.
  invariant_broken,
  /// The log remembers nothing of the producer, and the batch is not its first.
  unknown_producer,
  /// The batch does not follow the producer's newest one in the log.
  out_of_order_sequence,
  /// In the log already, further back than repeats are known.
  duplicate_sequence,
  /// The producer has gone on in a later epoch of its own.
  producer_fenced,
  /// So many producers appended lately that one more would make the log forget one of them.
  too_many_producers,
  /// Fewer replicas are in sync than the partition asks for, so nothing was appended.
  not_enough_replicas,
  /// Appended, but too few replicas are in sync for it to be confirmed.
  not_enough_replicas_after_append,
  /// This broker may no longer be the leader, as far as it knows: it has no lease.
  no_lease,
  /// A new leader does not know yet up to where its log may be read.
  offset_not_available,
  /// A follower names an older leader epoch.
  fenced_leader_epoch,
  /// A follower names a newer leader epoch.
  unknown_leader_epoch,
  /// A broker that is no replica wants to follow.
  not_a_replica,
};

const boost::system::error_category& replication_category() noexcept;
Error make_error_code(ReplicationErrc code) noexcept;

}  // namespace mq::replication

template <>
struct boost::system::is_error_code_enum<mq::replication::ReplicationErrc> : std::true_type {};
