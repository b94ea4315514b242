#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace mq::testing {

/// Stands between a client and a server on loopback and does what networks do: loses answers,
/// delays, goes silent, cuts. A thread of its own; any thread may call.
class TcpRelay {
 public:
  explicit TcpRelay(std::uint16_t server_port);
  ~TcpRelay();
  TcpRelay(const TcpRelay&) = delete;
  TcpRelay& operator=(const TcpRelay&) = delete;

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  /// From now on nothing that the server says arrives.
  void lose_answers(bool on) { lose_answers_ = on; }
  /// Nothing is forwarded either way, and nothing is lost.
  void hold(bool on) { hold_ = on; }
  /// New connections end at once.
  void refuse(bool on) { refuse_ = on; }
  /// Each piece arrives this much later.
  void delay(std::chrono::milliseconds by) { delay_ms_ = static_cast<int>(by.count()); }
  /// Ends every connection; returns when they are ended.
  void cut();

 private:
  using Clock = std::chrono::steady_clock;
  struct Piece {
    Clock::time_point due;
    std::string bytes;
  };
  struct Way {
    int from = -1;
    int to = -1;
    std::deque<Piece> pieces;
  };
  struct Link {
    Way up;    ///< client to server
    Way down;  ///< server to client
  };

  void run();
  void accept_one();
  bool forward(Link& link) const;
  bool read_way(Way& way, bool answers) const;
  static bool write_way(Way& way);
  static void end(const Link& link);

  const std::uint16_t server_port_;
  std::uint16_t port_ = 0;
  int listener_ = -1;
  std::atomic<bool> lose_answers_{false};
  std::atomic<bool> hold_{false};
  std::atomic<bool> refuse_{false};
  std::atomic<int> delay_ms_{0};
  std::atomic<bool> cut_{false};
  std::atomic<bool> stop_{false};
  std::vector<std::unique_ptr<Link>> links_;  // of the thread
  std::thread thread_;
};

}  // namespace mq::testing
