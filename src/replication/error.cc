#include "replication/error.h"

namespace mq::replication {
namespace {

class Category final : public boost::system::error_category {
 public:
  const char* name() const noexcept override { return "mq.replication"; }
  std::string message(int value) const override {
    switch (static_cast<ReplicationErrc>(value)) {
      case ReplicationErrc::out_of_order:
        return "an earlier batch of this connection was not appended";
      case ReplicationErrc::stale_connection:
        return "a newer connection of this client has taken over";
      case ReplicationErrc::offset_out_of_range:
        return "the offset is out of range";
      case ReplicationErrc::timed_out:
        return "not confirmed in time";
      case ReplicationErrc::closed:
        return "the partition is closed";
      case ReplicationErrc::epoch_changed:
        return "the leader epoch changed";
      case ReplicationErrc::invariant_broken:
        return "the partition broke a rule of its own";
      case ReplicationErrc::unknown_producer:
        return "nothing is remembered of this producer, and this is not its first batch";
      case ReplicationErrc::out_of_order_sequence:
        return "the batch does not follow the newest one of its producer";
      case ReplicationErrc::duplicate_sequence:
        return "the batch is in the log already";
      case ReplicationErrc::producer_fenced:
        return "the producer has gone on in a later epoch";
      case ReplicationErrc::too_many_producers:
        return "so many producers appended lately that one more cannot be remembered";
      case ReplicationErrc::not_enough_replicas:
        return "too few replicas are in sync";
      case ReplicationErrc::not_enough_replicas_after_append:
        return "appended, but too few replicas are in sync to confirm it";
      case ReplicationErrc::no_lease:
        return "the metadata store has not confirmed this broker's session of late; until it does, "
               "the newest end of the partition is not told and acks below all are refused";
      case ReplicationErrc::offset_not_available:
        return "the new leader does not know yet up to where its log may be read";
      case ReplicationErrc::fenced_leader_epoch:
        return "the follower follows an older leader epoch";
      case ReplicationErrc::unknown_leader_epoch:
        return "the follower follows a newer leader epoch";
      case ReplicationErrc::not_a_replica:
        return "the broker has no replica of it";
    }
    return "unknown replication error";
  }
};

}  // namespace

const boost::system::error_category& replication_category() noexcept {
  static const Category category;
  return category;
}

Error make_error_code(ReplicationErrc code) noexcept {
  return {static_cast<int>(code), replication_category()};
}

}  // namespace mq::replication
