#pragma once

namespace mq::base {

/// Fills the numbers 0 to 2 where the caller has closed them (`program 2>&-`), so that no file or
/// socket gets them and log lines are never written into a segment or to a peer. Reading or writing
/// there fails, as it should. First thing in main().
void claim_standard_streams() noexcept;

}  // namespace mq::base
