#pragma once

#include <string>
#include <vector>

#include "protocol/metadata.h"
#include "protocol/pull_image.h"
#include "protocol/topics.h"

namespace mq::protocol {

/// Answers that list topics, cut so that each piece fits into the header of one frame: the frames
/// of one answer, in order. Every piece is a response of its own. A topic whose partitions do not
/// fit goes on in the next piece, as an entry with its name and id and the partitions that follow;
/// what else there is stands in its first piece.
std::vector<std::string> encode_in_parts(const MetadataResponse& response);
std::vector<std::string> encode_in_parts(const ListTopicsResponse& response);
std::vector<std::string> encode_in_parts(const DescribeTopicsResponse& response);
std::vector<std::string> encode_in_parts(const PullImageResponse& response);

/// The other way round: adds the next piece of an answer to those before it.
void join(MetadataResponse& whole, MetadataResponse part);
void join(ListTopicsResponse& whole, ListTopicsResponse part);
void join(DescribeTopicsResponse& whole, DescribeTopicsResponse part);
void join(PullImageResponse& whole, PullImageResponse part);

}  // namespace mq::protocol
