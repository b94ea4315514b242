#pragma once

#include <cstdint>
#include <list>
#include <map>

#include "replication/error.h"

namespace mq::replication {

/// Which batch of which connection of which client this is.
struct BatchOrigin {
  std::uint64_t client_instance = 0;    ///< random, one per client object
  std::uint64_t connection_number = 0;  ///< rises with every connection of the instance
  std::uint64_t sequence = 0;           ///< 0 starts anew, else one above the batch before
};

/// The order rule of one partition (PAR-5): a retry never reorders. A connection's batches are
/// taken in the order of their numbers or refused as not applied, and once a connection has
/// appended, nothing of an older connection of the same client is taken.
///
/// Remembers the newest `clients_max` clients; one that was forgotten has to start at 0 again,
/// which its client does by itself when it is refused. Nothing is stored: after a restart every
/// connection is new and starts at 0.
class ClientOrder {
 public:
  explicit ClientOrder(std::size_t clients_max = 1024) : clients_max_(clients_max) {}

  /// no error, out_of_order or stale_connection. Changes nothing.
  [[nodiscard]] Error check(const BatchOrigin& origin) const;
  /// check() has passed, and the append is tried: number 0 starts anew from this moment, also when
  /// the append then fails. Otherwise the batch behind a refused 0 could take the number that the
  /// run before it has left, and overtake.
  void tried(const BatchOrigin& origin);
  /// Nothing of an older connection is taken from now on, and this one starts at 0.
  void takes_over(const BatchOrigin& origin) { set_next(origin, 0); }
  /// The batch was appended. check() has passed.
  void appended(const BatchOrigin& origin) { set_next(origin, origin.sequence + 1); }
  [[nodiscard]] std::size_t clients() const noexcept { return by_instance_.size(); }

 private:
  struct Client {
    std::uint64_t instance;
    std::uint64_t connection_number;
    std::uint64_t next_sequence;
  };
  void set_next(const BatchOrigin& origin, std::uint64_t next_sequence);

  std::size_t clients_max_;
  std::list<Client> newest_first_;
  // Ordered, so that no choice of instance numbers makes a lookup slow.
  std::map<std::uint64_t, std::list<Client>::iterator> by_instance_;
};

}  // namespace mq::replication
