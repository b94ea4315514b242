#include "base/log.h"
#include "controller/controller_impl.h"
#include "controller/leadership.h"
#include "controller/status.h"

// A store that several processes share may end this broker's session.
namespace mq::controller {
namespace {

constexpr std::chrono::seconds kFirstClaim{30};
constexpr std::chrono::seconds kPause{1};

}  // namespace

asio::awaitable<Result<void>> Controller::Impl::claim() {
  if (!config_.shared_store) co_return Result<void>();
  const auto deadline = home_.now() + kFirstClaim;
  MQ_CO_TRY_VOID(co_await claim_leadership(store_, writer_, config_, home_, deadline));
  store_.on_session_lost([this] { on_session_lost(); });
  co_return Result<void>();
}

void Controller::Impl::on_session_lost() {
  leads_ = false;
  if (registering_ || stopping_) return;
  registering_ = true;
  tasks_.spawn("registering again", keep_registering());
}

asio::awaitable<void> Controller::Impl::keep_registering() {
  Error said;
  while (!stopping_) {
    const auto registered = co_await register_once();
    if (registered) {
      base::log_info("controller", "registered again, under the same broker epoch {}", epoch_);
      break;
    }
    if (registered.error() != said)
      base::log_warning("controller", "not registered again yet: {}", registered.error().message());
    said = registered.error();
    const bool stopped = co_await stopped_.wait_until(home_.now() + kPause);
    if (stopped) break;
  }
  registering_ = false;
}

/// MET-4: changes wait until it is over, and none that began before goes on behind it, since what
/// it would write next would not be covered by the old session.
asio::awaitable<Result<void>> Controller::Impl::register_once() {
  const auto turn = co_await queue_.wait_for_turn();
  MQ_CO_TRY_VOID(co_await store_.renew());
  const auto deadline = home_.now() + kPause;
  MQ_CO_TRY_VOID(co_await claim_leadership(store_, writer_, config_, home_, deadline));
  MQ_CO_TRY_VOID(co_await register_again(store_, writer_, config_, epoch_));
  leads_ = store_.online();
  names_unsure_ = true;
  want_repair();
  if (!leads_) co_return make_error_code(MetadataErrc::session_lost);
  co_return Result<void>();
}

asio::awaitable<Result<std::int64_t>> Controller::Impl::next_producer_id() {
  return producer_ids_.next();
}

Status Controller::Impl::metadata_refusal(const Error& error) const {
  auto refusal = metadata_status(error, config_.broker);
  const auto trouble = store_.trouble();
  if (!trouble.empty()) refusal.text += "; " + trouble;
  return refusal;
}

}  // namespace mq::controller
