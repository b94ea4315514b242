#pragma once

#include "base/result.h"

namespace mq::metadata {

using base::Error;
using base::Result;

enum class MetadataErrc {
  not_found = 1,     ///< no node at this path (or no parent, for a create)
  already_exists,    ///< create: the node is there
  bad_version,       ///< the node has another version than the one named
  not_empty,         ///< remove: the node has children
  ephemeral_parent,  ///< create: an ephemeral node has no children
  invalid_path,
  too_large,        ///< a value or a multi is above its limit; nothing was tried
  not_applied,      ///< multi: this operation was fine, another one was not, so none took effect
  unavailable,      ///< the store does not answer; the call took no effect
  full,             ///< no space for the write; it took no effect, reads go on
  outcome_unknown,  ///< the store failed while it was writing: applied or not; read to find out
  damaged,          ///< a stored value does not match its checksum or does not parse
  unknown_format,   ///< the file is no metadata store, or one of another format version
  session_lost,     ///< ephemeral nodes of this session are gone; renew() begins another one
  not_permitted,    ///< the store's access rules refuse it; it took no effect
};

const boost::system::error_category& metadata_category() noexcept;
Error make_error_code(MetadataErrc code) noexcept;

}  // namespace mq::metadata

template <>
struct boost::system::is_error_code_enum<mq::metadata::MetadataErrc> : std::true_type {};
