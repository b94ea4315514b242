#include "base/disk_executor.h"

#include <boost/asio/associated_executor.hpp>
#include <memory>

namespace mq::base {

asio::awaitable<void> DiskExecutor::run(std::function<void()> work) {
  return asio::async_initiate<const asio::use_awaitable_t<>&, void()>(
      [this](auto handler, std::function<void()> blocking) {
        auto held = std::make_shared<decltype(handler)>(std::move(handler));
        submit([held, blocking = std::move(blocking)]() mutable {
          blocking();
          blocking = nullptr;  // what it captured goes before the caller resumes
          auto executor = asio::get_associated_executor(*held);
          asio::post(executor, std::move(*held));
        });
      },
      asio::use_awaitable, std::move(work));
}

}  // namespace mq::base
