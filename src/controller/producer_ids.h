#pragma once

#include "controller/change_queue.h"
#include "controller/node_writer.h"

namespace mq::controller {

/// Gives out producer ids that no other call of any broker ever gives out (IDM-5). They are taken
/// from /producers/ids in blocks, by a write that names the node's version; what a broker has not
/// used of its blocks when it ends is lost, which harms nobody: there are 2^63.
///
/// On the runtime of the store. Calls may overlap.
class ProducerIds {
 public:
  static constexpr std::int64_t kBlock = 1000;
  /// Of those that are kept in stock: new producers of hours.
  static constexpr std::int64_t kStockBlock = 100'000;

  /// Everything given outlives it. With `keep_stock` there is always another block ahead, so that
  /// ids are given out while the store does not answer: between one and two of the large blocks.
  ProducerIds(metadata::MetadataStore& store, base::Runtime& home, bool keep_stock = false)
      : store_(store),
        home_(home),
        writer_(store, home),
        keep_stock_(keep_stock),
        block_(keep_stock ? kStockBlock : kBlock),
        turns_(home),
        stopped_(home),
        tasks_(home) {}

  /// Errors, of the store: unavailable or full (nothing was taken), outcome_unknown (a block may be
  /// lost), damaged.
  asio::awaitable<Result<std::int64_t>> next();

  /// Takes the first block ahead.
  void start() { want_stock(); }
  asio::awaitable<void> stop();

 private:
  struct Block {
    std::int64_t next = 0;
    std::int64_t end = 0;  ///< exclusive
  };
  asio::awaitable<Result<std::int64_t>> take();
  asio::awaitable<Result<Block>> take_block();
  void want_stock();
  asio::awaitable<void> fill_stock();
  asio::awaitable<Result<void>> take_ahead();

  metadata::MetadataStore& store_;
  base::Runtime& home_;
  NodeWriter writer_;
  const bool keep_stock_;
  const std::int64_t block_;
  ChangeQueue turns_;
  Block current_;
  Block ahead_;
  bool filling_ = false;
  bool stopping_ = false;
  base::WaitList stopped_;
  base::TaskGroup tasks_;
};

}  // namespace mq::controller
