#pragma once

#include <cstdint>

#include "model/ids.h"

namespace mq::model {

/// Records of a log that cannot be read: those of one batch, or of several that follow it.
struct DamagedPlace {
  Offset segment;              ///< the file that it is in
  std::uint64_t position = 0;  ///< and the byte there
  Offset offset;               ///< of the first such record; -1: not known
  Offset end;                  ///< where reading can go on; -1: not known
  friend bool operator==(const DamagedPlace&, const DamagedPlace&) = default;
};

/// The same records, whichever replica they are in. Segments of two replicas may begin at different
/// places.
[[nodiscard]] inline bool same_records(const DamagedPlace& one,
                                       const DamagedPlace& other) noexcept {
  if (one.offset != Offset() && other.offset != Offset()) return one.offset == other.offset;
  return one.segment == other.segment && one.position == other.position;
}

}  // namespace mq::model
