#pragma once

#include "base/result.h"

namespace mq::controller {

/// Why a start is refused. Refused changes are protocol::Status.
enum class ControllerErrc {
  broker_id_in_use = 1,  ///< another live process has registered this broker id
  damaged_metadata,      ///< a node that every cluster has is missing
  not_controller,        ///< another broker has been elected, or may have been
};

const boost::system::error_category& controller_category() noexcept;
base::Error make_error_code(ControllerErrc code) noexcept;

}  // namespace mq::controller

template <>
struct boost::system::is_error_code_enum<mq::controller::ControllerErrc> : std::true_type {};
