#include "metadata/error.h"

#include <string>

namespace mq::metadata {
namespace {

class MetadataCategory : public boost::system::error_category {
 public:
  const char* name() const noexcept override { return "mq.metadata"; }
  std::string message(int value) const override {
    switch (static_cast<MetadataErrc>(value)) {
      case MetadataErrc::not_found:
        return "no such node";
      case MetadataErrc::already_exists:
        return "the node exists already";
      case MetadataErrc::bad_version:
        return "the node has another version";
      case MetadataErrc::not_empty:
        return "the node has children";
      case MetadataErrc::ephemeral_parent:
        return "an ephemeral node has no children";
      case MetadataErrc::invalid_path:
        return "the node path is not allowed";
      case MetadataErrc::too_large:
        return "the value or the transaction is too large";
      case MetadataErrc::not_applied:
        return "another operation of the transaction failed";
      case MetadataErrc::unavailable:
        return "the metadata store does not answer";
      case MetadataErrc::full:
        return "no space for the metadata store";
      case MetadataErrc::outcome_unknown:
        return "the metadata store failed while it was writing";
      case MetadataErrc::damaged:
        return "the metadata store is damaged";
      case MetadataErrc::unknown_format:
        return "the metadata store has a format that this release does not know";
      case MetadataErrc::session_lost:
        return "the session with the metadata store is lost";
      case MetadataErrc::not_permitted:
        return "the metadata store's access rules refuse it";
    }
    return "unknown error";
  }
};

}  // namespace

const boost::system::error_category& metadata_category() noexcept {
  static const MetadataCategory category;
  return category;
}

Error make_error_code(MetadataErrc code) noexcept {
  return {static_cast<int>(code), metadata_category()};
}

}  // namespace mq::metadata
