#pragma once

#include <functional>

#include "controller/node_writer.h"

namespace mq::controller {

/// The writes of one elected controller. Each names the controller epoch that it was elected with,
/// so that none takes effect once another has been elected (CTL-1); the first that is refused for
/// that reason deposes it, and nothing is tried any more.
class FencedWriter {
 public:
  /// `deposed` is called once, when a write found another epoch.
  FencedWriter(metadata::MetadataStore& store, base::Runtime& runtime,
               std::int32_t controller_epoch, std::function<void()> deposed)
      : writer_(store, runtime),
        store_(store),
        controller_epoch_(controller_epoch),
        on_deposed_(std::move(deposed)) {}

  [[nodiscard]] metadata::WriterTag next_tag() noexcept { return writer_.next_tag(); }
  /// As NodeWriter::commit(); the results are those of `operations`. not_controller: nothing was
  /// written, and nothing will be.
  asio::awaitable<Result<metadata::MultiResult>> commit(std::vector<metadata::Operation> operations,
                                                        std::string witness,
                                                        metadata::WriterTag tag);
  /// Removes, which may be repeated whatever became of them: outcome_unknown is not resolved.
  asio::awaitable<Result<metadata::MultiResult>> remove(
      std::vector<metadata::Operation> operations);

  /// No write begins any more.
  void resign() noexcept {
    resigned_ = true;
    writer_.hurry();
  }
  [[nodiscard]] bool resigned() const noexcept { return resigned_; }
  [[nodiscard]] std::int32_t controller_epoch() const noexcept { return controller_epoch_; }

 private:
  void add_fence(std::vector<metadata::Operation>& operations) const;
  Result<metadata::MultiResult> judge(Result<metadata::MultiResult> result);

  NodeWriter writer_;
  metadata::MetadataStore& store_;
  std::int32_t controller_epoch_;
  std::function<void()> on_deposed_;
  bool resigned_ = false;
};

}  // namespace mq::controller
