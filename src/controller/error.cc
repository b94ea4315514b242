#include "controller/error.h"

#include <string>

namespace mq::controller {
namespace {

class ControllerCategory : public boost::system::error_category {
 public:
  const char* name() const noexcept override { return "mq.controller"; }
  std::string message(int value) const override {
    switch (static_cast<ControllerErrc>(value)) {
      case ControllerErrc::broker_id_in_use:
        return "another live broker has this id";
      case ControllerErrc::damaged_metadata:
        return "the metadata has no node /topics, /state or /deleting, which every cluster has";
      case ControllerErrc::not_controller:
        return "this broker is not the controller any more";
    }
    return "unknown error";
  }
};

}  // namespace

const boost::system::error_category& controller_category() noexcept {
  static const ControllerCategory category;
  return category;
}

base::Error make_error_code(ControllerErrc code) noexcept {
  return {static_cast<int>(code), controller_category()};
}

}  // namespace mq::controller
