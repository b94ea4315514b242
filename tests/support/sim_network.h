#pragma once

#include <memory>
#include <string>

#include "base/network.h"
#include "base/runtime.h"
#include "support/simulator.h"

namespace mq::testing {

/// What an undisturbed simulated link does to the bytes on it. Order within a stream is kept.
struct SimLink {
  base::Duration delay_min = std::chrono::microseconds(20);
  base::Duration delay_max = std::chrono::microseconds(800);
  double slow_chance = 0.01;  ///< of a piece that takes up to slow_max
  base::Duration slow_max = std::chrono::milliseconds(50);
  std::size_t piece_bytes_max = std::size_t{64} << 10;  ///< what travels, and is read, at once
  std::size_t window_bytes = std::size_t{1} << 20;      ///< sent and not yet read, per direction
};

/// The network between the named nodes of one simulated world. A host name is a node's name;
/// "127.0.0.1", "localhost" and "0.0.0.0" are the node itself.
class SimNetwork {
 public:
  SimNetwork(Simulator& simulator, SimLink link = {});
  ~SimNetwork();
  SimNetwork(const SimNetwork&) = delete;
  SimNetwork& operator=(const SimNetwork&) = delete;

  /// The network as one incarnation of `node` sees it; an earlier incarnation has been crashed or
  /// has closed what it had. Outlived by this object.
  std::unique_ptr<base::Network> join(const std::string& node, base::Runtime& runtime);

  /// How the peers of a crashed node learn of it.
  enum class Crash {
    reset,   ///< the process died: its kernel resets the connections, and refuses new ones
    silent,  ///< the machine died: nothing comes any more, until it is back and refuses old packets
  };
  /// Ends the present incarnation of `node`: nothing it does on the network has an effect.
  void crash(const std::string& node, Crash how);

  /// Packets between the two are lost until they are mended: nothing arrives, connecting times out.
  void cut(const std::string& a, const std::string& b);
  /// Only those from the one to the other are lost. No connection comes to be either.
  void cut_one_way(const std::string& from, const std::string& to);
  /// A firewall refuses new connections from the one to the other, which lives.
  void refuse(const std::string& from, const std::string& to);
  void mend(const std::string& a, const std::string& b);
  void heal();  ///< all
  /// For what is sent from now on, on all links.
  void set_link(const SimLink& link);
  [[nodiscard]] const SimLink& link() const;
  /// Breaks all connections of `node`; what is in flight is lost, so a frame may end in its middle.
  void reset_connections(const std::string& node);
  /// The same between two nodes.
  void reset_between(const std::string& a, const std::string& b);
  /// Breaks one connection chosen by `random`; false when there is none.
  bool reset_one(SimRandom& random);
  [[nodiscard]] std::size_t connections() const;

  struct State;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace mq::testing
