#include "mq/config.h"

#include <fmt/format.h>

#include "base/network.h"
#include "client/core/error.h"

namespace mq {
inline namespace v1 {
namespace {

constexpr std::size_t kClientIdBytesMax = 128;
constexpr std::size_t kRackBytesMax = 128;
constexpr std::uint16_t kDefaultPort = 9500;
constexpr Duration kTimeMax = std::chrono::hours(24 * 24);  // fits 31 bits of milliseconds
constexpr std::size_t kBatchBytesMin = 1024;
constexpr std::size_t kBatchBytesMax = std::size_t{16} << 20;
constexpr std::size_t kFetchBytesMin = 1024;
constexpr std::size_t kFetchBytesMax = std::size_t{64} << 20;

void refuse(std::vector<Error>& problems, std::string message) {
  problems.push_back(client::make_error(Errc::invalid_client_config, std::move(message)));
}

/// Longer is a mistake in the unit; and every deadline can be reckoned.
void check_not_longer(std::vector<Error>& problems, std::string_view name, Duration value) {
  if (value > kTimeMax)
    refuse(problems, fmt::format("{} is {} ms; it must be at most {} days", name, value.count(),
                                 kTimeMax / std::chrono::hours(24)));
}

void check_positive(std::vector<Error>& problems, std::string_view name, Duration value) {
  if (value <= Duration::zero())
    refuse(problems, fmt::format("{} is {} ms; it must be above 0", name, value.count()));
  check_not_longer(problems, name, value);
}

void check_not_negative(std::vector<Error>& problems, std::string_view name, Duration value) {
  if (value < Duration::zero()) refuse(problems, fmt::format("{} is negative", name));
  check_not_longer(problems, name, value);
}

void check_range(std::vector<Error>& problems, std::string_view name, std::size_t value,
                 std::size_t low, std::size_t high) {
  if (value < low || value > high)
    refuse(problems, fmt::format("{} is {}; it must be {} to {}", name, value, low, high));
}

}  // namespace

std::vector<Error> ClientConfig::validate() const {
  std::vector<Error> problems;
  if (bootstrap.empty()) refuse(problems, "bootstrap names no broker address");
  for (const std::string& text : bootstrap) {
    const auto parsed = base::parse_endpoint(text, kDefaultPort);
    if (!parsed.endpoint)
      refuse(problems, fmt::format("bootstrap address '{}': {}", text, parsed.error));
  }
  if (client_id.size() > kClientIdBytesMax)
    refuse(problems, fmt::format("client_id has {} bytes; at most {} are allowed", client_id.size(),
                                 kClientIdBytesMax));
  check_positive(problems, "connect_timeout", connect_timeout);
  check_positive(problems, "request_timeout", request_timeout);
  return problems;
}

std::vector<Error> ProducerConfig::validate() const {
  std::vector<Error> problems = ClientConfig::validate();
  check_not_negative(problems, "linger", linger);
  check_positive(problems, "delivery_timeout", delivery_timeout);
  check_not_negative(problems, "close_timeout", close_timeout);
  check_range(problems, "batch_bytes", batch_bytes, kBatchBytesMin, kBatchBytesMax);
  if (buffer_bytes < kBatchBytesMin)
    refuse(problems,
           fmt::format("buffer_bytes is {}; it must be at least {}", buffer_bytes, kBatchBytesMin));
  return problems;
}

std::vector<Error> ConsumerConfig::validate() const {
  std::vector<Error> problems = ClientConfig::validate();
  if (max_poll_records == 0) refuse(problems, "max_poll_records is 0");
  check_range(problems, "fetch_bytes", fetch_bytes, kFetchBytesMin, kFetchBytesMax);
  check_positive(problems, "fetch_wait", fetch_wait);
  if (rack.size() > kRackBytesMax)
    refuse(problems,
           fmt::format("rack has {} bytes; at most {} are allowed", rack.size(), kRackBytesMax));
  return problems;
}

}  // namespace v1
}  // namespace mq
