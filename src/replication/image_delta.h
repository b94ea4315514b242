#pragma once

#include <map>
#include <string>

#include "metadata/cluster_image.h"
#include "protocol/pull_image.h"

namespace mq::replication {

/// The epoch of the controller that made an image, from its version; higher ones are newer.
[[nodiscard]] constexpr std::uint64_t controller_epoch_of(std::uint64_t version) noexcept {
  return version >> 32;
}

/// What a topic has that says nothing itself, from what a controller's answer says of its defaults.
/// One that this release does not take is left at its built-in value, with a line in the log.
[[nodiscard]] model::TopicSettings defaults_of(const std::map<std::string, std::string>& told);

/// `current` (null: none yet) with what a controller's answer says. Null if the answer must not be
/// taken: it is of an earlier controller than `current`, or a change of another image.
///
/// A partition never goes back: of what `current` and the answer say about it, the one with the
/// higher leader epoch and version is kept (C2). A topic whose node in the metadata is damaged
/// stays as it was: nobody else is given its partitions meanwhile. `defaults` are those of the
/// answer, whatever this broker's own are: a topic has the same settings everywhere.
[[nodiscard]] metadata::ImagePtr next_image(const metadata::ImagePtr& current,
                                            const protocol::PullImageResponse& answer,
                                            const model::TopicSettings& defaults);

}  // namespace mq::replication
