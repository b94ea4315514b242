#include "broker/reserve_backed_store.h"

#include "base/log.h"
#include "storage/space_reserve.h"

namespace mq::broker {

using base::Result;
using metadata::MetadataErrc;

/// `full` says that nothing was applied. Calls may come between the tries, as they may before.
asio::awaitable<Result<metadata::MultiResult>> ReserveBackedStore::multi(
    std::vector<metadata::Operation> operations) {
  while (true) {
    auto again = operations;
    auto result = co_await store_->multi(std::move(again));
    if (result || result.error() != make_error_code(MetadataErrc::full)) co_return result;
    const bool given = co_await give_up_slice();
    if (!given) co_return result;
  }
}

asio::awaitable<bool> ReserveBackedStore::give_up_slice() {
  bool given = false;
  const auto work = [&] { given = storage::give_up_reserve_slice(files_, directory_); };
  co_await executor_.run(work);
  if (given) {
    base::log_warning("metadata", "{} is full: a slice of its reserve is given up for the metadata",
                      directory_);
  }
  co_return given;
}

}  // namespace mq::broker
