#include "model/error.h"

#include <string>

namespace mq::model {
namespace {

class ModelCategory : public boost::system::error_category {
 public:
  const char* name() const noexcept override { return "mq.model"; }
  std::string message(int value) const override {
    switch (static_cast<ModelErrc>(value)) {
      case ModelErrc::incomplete_batch:
        return "the record batch is cut short";
      case ModelErrc::corrupt_batch:
        return "the record batch is damaged";
      case ModelErrc::unsupported_format:
        return "the record batch has a format that this version does not know";
      case ModelErrc::invalid_batch:
        return "the record batch breaks a rule of its format";
      case ModelErrc::too_large:
        return "the record batch is above the size limit";
      case ModelErrc::corrupt_records:
        return "the records inside the batch do not parse";
    }
    return "unknown error";
  }
};

}  // namespace

const boost::system::error_category& model_category() noexcept {
  static const ModelCategory category;
  return category;
}

Error make_error_code(ModelErrc code) noexcept {
  return {static_cast<int>(code), model_category()};
}

}  // namespace mq::model
