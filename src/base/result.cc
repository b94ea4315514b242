#include "base/result.h"

#include <cerrno>
#include <string>

namespace mq::base {
namespace {

class BaseCategory : public boost::system::error_category {
 public:
  const char* name() const noexcept override { return "mq.base"; }
  std::string message(int value) const override {
    switch (static_cast<BaseErrc>(value)) {
      case BaseErrc::io_failed:
        return "input/output error";
      case BaseErrc::no_space:
        return "no space left on the device";
      case BaseErrc::not_found:
        return "not found";
      case BaseErrc::already_exists:
        return "already exists";
      case BaseErrc::would_block:
        return "would have to wait for the disk";
      case BaseErrc::locked:
        return "locked by another process";
      case BaseErrc::end_of_stream:
        return "the peer closed the connection";
      case BaseErrc::connection_lost:
        return "the connection broke";
      case BaseErrc::connection_refused:
        return "connection refused";
      case BaseErrc::timed_out:
        return "timed out";
      case BaseErrc::closed:
        return "closed";
      case BaseErrc::malformed:
        return "malformed input";
      case BaseErrc::too_large:
        return "size above its limit";
      case BaseErrc::address_in_use:
        return "address in use";
      case BaseErrc::not_permitted:
        return "not permitted";
    }
    return "unknown error";
  }
};

}  // namespace

const boost::system::error_category& base_category() noexcept {
  static const BaseCategory category;
  return category;
}

Error make_error_code(BaseErrc code) noexcept { return {static_cast<int>(code), base_category()}; }

Error error_from_errno(int errno_value) noexcept {
  switch (errno_value) {
    case ENOSPC:
    case EDQUOT:
      return BaseErrc::no_space;
    case ENOENT:
    case ENOTDIR:
    case EADDRNOTAVAIL:
      return BaseErrc::not_found;
    case EEXIST:
      return BaseErrc::already_exists;
    case EAGAIN:
      return BaseErrc::would_block;
    case EACCES:
    case EPERM:
      return BaseErrc::not_permitted;
    case EADDRINUSE:
      return BaseErrc::address_in_use;
    case ECONNREFUSED:
      return BaseErrc::connection_refused;
    case EPIPE:
    case ECONNRESET:
    case ENETUNREACH:
    case EHOSTUNREACH:
      return BaseErrc::connection_lost;
    case ETIMEDOUT:
      return BaseErrc::timed_out;
    default:
      return BaseErrc::io_failed;
  }
}

}  // namespace mq::base
