#include "broker/long_answer.h"

#include "broker/connection.h"

namespace mq::broker {
namespace {

asio::awaitable<void> send_all(Request request, std::vector<std::string> headers) {
  std::size_t bytes = 0;
  for (const auto& header : headers) bytes += header.size();
  auto& budget = request.worker().answer_budget();
  const std::size_t taken = co_await budget.take(bytes);
  const auto memory = std::make_shared<net::Lease>(budget, taken);
  for (std::size_t i = 0; i < headers.size(); ++i) {
    const bool room = co_await request.connection().room_for_answer();
    if (!room) co_return request.finish_silently();
    const bool more = i + 1 < headers.size();
    auto header = std::exchange(headers[i], {});
    request.answer(std::move(header), {}, memory, more);
  }
}

}  // namespace

void answer_in_frames(Request request, std::vector<std::string> headers) {
  if (headers.size() == 1) return request.answer(std::move(headers.front()));
  auto& worker = request.worker();
  worker.tasks().spawn("long answer", send_all(std::move(request), std::move(headers)));
}

}  // namespace mq::broker
