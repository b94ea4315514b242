#pragma once

#include "controller/change_queue.h"
#include "controller/node_writer.h"

namespace mq::controller {

/// Gives out producer ids that no other call of any broker ever gives out (IDM-5). They are taken
/// from /producers/ids in blocks of 1,000 by a write that names the node's version; what a broker
/// has not used of its block when it ends is lost, which harms nobody.
///
/// On the runtime of the store. Calls may overlap.
class ProducerIds {
 public:
  static constexpr std::int64_t kBlock = 1000;

  /// Everything given outlives it.
  ProducerIds(metadata::MetadataStore& store, NodeWriter& writer, base::Runtime& home)
      : store_(store), writer_(writer), turns_(home) {}

  /// Errors, of the store: unavailable or full (nothing was taken), outcome_unknown (a block may be
  /// lost), damaged.
  asio::awaitable<Result<std::int64_t>> next();

  /// Takes a block ahead, unless there is one: with it ids are given out while the store does not
  /// answer.
  asio::awaitable<Result<void>> keep_spare();
  [[nodiscard]] bool has_spare() const noexcept { return spare_.next != spare_.end; }

 private:
  struct Block {
    std::int64_t next = 0;
    std::int64_t end = 0;  ///< exclusive
  };
  asio::awaitable<Result<Block>> take_block();

  metadata::MetadataStore& store_;
  NodeWriter& writer_;
  ChangeQueue turns_;
  Block current_;
  Block spare_;
};

}  // namespace mq::controller
