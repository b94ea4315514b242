#pragma once

#include <functional>
#include <optional>

#include "client/core/client_core.h"
#include "model/record_batch.h"

namespace mq::client {

/// The name under which a producer's batches are known to the cluster: one id for its whole life,
/// asked for when the first batch wants to go. On the client's runtime.
class ProducerId {
 public:
  explicit ProducerId(ClientCore& core);

  /// Called when the id came, or could not be had.
  void on_change(std::function<void()> call) { on_change_ = std::move(call); }
  [[nodiscard]] const std::optional<model::ProducerIdentity>& get() const noexcept { return id_; }
  /// Begins to ask, unless that is done or under way; again and again while it may help.
  void want();
  /// Why it is not there yet; empty when nothing went wrong.
  [[nodiscard]] const std::string& trouble() const noexcept { return trouble_; }
  /// A refusal that asking again will not change, once; want() asks anew after it.
  [[nodiscard]] std::optional<Error> take_refusal() noexcept {
    return std::exchange(refusal_, std::nullopt);
  }

  void begin_stop();
  /// After begin_stop() and the pool's stop.
  asio::awaitable<void> stopped();

 private:
  asio::awaitable<void> ask();
  asio::awaitable<Result<model::ProducerIdentity>> ask_once();

  ClientCore& core_;
  std::function<void()> on_change_;
  std::optional<model::ProducerIdentity> id_;
  std::optional<Error> refusal_;
  std::string trouble_;
  bool asking_ = false;
  bool stopped_ = false;
  base::TaskGroup tasks_;
  base::WaitList stopping_;
};

}  // namespace mq::client
