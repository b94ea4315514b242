#include "controller/fenced_writer.h"

#include "base/log.h"
#include "base/mutants.h"
#include "controller/error.h"
#include "metadata/znode_layout.h"

namespace mq::controller {

using metadata::MetadataErrc;
using metadata::MultiResult;
using metadata::Operation;

void FencedWriter::add_fence(std::vector<Operation>& operations) const {
  if (MQ_MUTANT("controller_writes_unfenced")) return;
  const metadata::Check fence(std::string(metadata::layout::kControllerEpoch), controller_epoch_);
  operations.insert(operations.begin(), fence);
}

asio::awaitable<Result<MultiResult>> FencedWriter::commit(std::vector<Operation> operations,
                                                          std::string witness,
                                                          metadata::WriterTag tag) {
  if (resigned_) co_return make_error_code(ControllerErrc::not_controller);
  add_fence(operations);
  auto result = co_await writer_.commit(std::move(operations), std::move(witness), tag);
  co_return judge(std::move(result));
}

asio::awaitable<Result<MultiResult>> FencedWriter::remove(std::vector<Operation> operations) {
  if (resigned_) co_return make_error_code(ControllerErrc::not_controller);
  add_fence(operations);
  auto result = co_await store_.multi(std::move(operations));
  co_return judge(std::move(result));
}

Result<MultiResult> FencedWriter::judge(Result<MultiResult> result) {
  if (!result || result->operations.empty()) return result;  // the latter after a lost answer
  if (MQ_MUTANT("controller_writes_unfenced")) return result;
  const Error fence = result->operations.front().error;
  result->operations.erase(result->operations.begin());
  const bool other_epoch = fence == make_error_code(MetadataErrc::bad_version) ||
                           fence == make_error_code(MetadataErrc::not_found);
  if (!other_epoch) return result;
  if (!std::exchange(resigned_, true)) {
    base::log_warning("controller", "another controller has been elected after epoch {}",
                      controller_epoch_);
    writer_.hurry();
    on_deposed_();
  }
  return make_error_code(ControllerErrc::not_controller);
}

}  // namespace mq::controller
