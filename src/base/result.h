#pragma once

#include <boost/system/error_code.hpp>
#include <boost/system/result.hpp>
#include <utility>

namespace mq::base {

using Error = boost::system::error_code;

/// A value or an error code: what every call returns whose failure is expected (peer, disk,
/// timeout, full queue). Boost 1.81 leaves [[nodiscard]] off its own class.
template <class T>
class [[nodiscard]] Result : public boost::system::result<T> {
 public:
  using boost::system::result<T>::result;
};

/// Errors that any folder may return; folders have an enum of their own for the rest.
enum class BaseErrc {
  io_failed =
      1,      ///< the operating system refused a read or write; errno was logged where it happened
  no_space,   ///< ENOSPC or EDQUOT
  not_found,  ///< no such file, directory or host
  already_exists,
  would_block,      ///< a non-blocking read would have to wait for the disk
  locked,           ///< another process holds the lock
  end_of_stream,    ///< the peer closed the connection in order
  connection_lost,  ///< the connection broke
  connection_refused,
  timed_out,
  closed,     ///< this object was closed or is shutting down
  malformed,  ///< input does not parse
  too_large,  ///< input names a size above its limit
  address_in_use,
  not_permitted,
};

const boost::system::error_category& base_category() noexcept;
Error make_error_code(BaseErrc code) noexcept;

/// Maps an errno value to the nearest BaseErrc.
Error error_from_errno(int errno_value) noexcept;

}  // namespace mq::base

template <>
struct boost::system::is_error_code_enum<mq::base::BaseErrc> : std::true_type {};

#define MQ_CAT_(a, b) a##b
#define MQ_CAT(a, b) MQ_CAT_(a, b)

/// MQ_TRY(auto value, expression);  unwraps a Result or returns its error. A statement on its own
/// line, never the body of a bare if.
#define MQ_TRY(decl, expr) MQ_TRY_IMPL_(MQ_CAT(mq_try_, __LINE__), decl, expr, return )
#define MQ_CO_TRY(decl, expr) MQ_TRY_IMPL_(MQ_CAT(mq_try_, __LINE__), decl, expr, co_return )
#define MQ_TRY_IMPL_(tmp, decl, expr, ret) \
  auto tmp = (expr);                       \
  if (!tmp) ret tmp.error();               \
  decl = *std::move(tmp)
#define MQ_TRY_VOID(expr) MQ_TRY_VOID_IMPL_(MQ_CAT(mq_try_, __LINE__), expr, return )
#define MQ_CO_TRY_VOID(expr) MQ_TRY_VOID_IMPL_(MQ_CAT(mq_try_, __LINE__), expr, co_return )
#define MQ_TRY_VOID_IMPL_(tmp, expr, ret) \
  auto tmp = (expr);                      \
  if (!tmp) ret tmp.error()
