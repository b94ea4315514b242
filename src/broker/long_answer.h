#pragma once

#include <string>
#include <vector>

#include "broker/request.h"

namespace mq::broker {

/// Answers with one frame for each of `headers`, of which there is one at least. Several are taken
/// from the budget of answers and sent as the peer reads them.
void answer_in_frames(Request request, std::vector<std::string> headers);

}  // namespace mq::broker
