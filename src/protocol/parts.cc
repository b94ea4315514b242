#include "protocol/parts.h"

#include <iterator>

#include "protocol/frame.h"

namespace mq::protocol {
namespace {

/// What one piece may hold. Half of what a header and its lists may have, since bytes are reckoned
/// from above and lists may stand beside each other.
constexpr std::size_t kPartBytes = kHeaderBytesMax / 2;
constexpr std::size_t kPartEntries = 8'192;
/// Never fewer than the encoding takes: tags, lengths and numbers.
constexpr std::size_t kEntryBytes = 128;
constexpr std::size_t kNumberBytes = 11;

std::size_t bytes_of(const PartitionMetadata& partition) {
  return kEntryBytes + kNumberBytes * (partition.replicas.size() + partition.in_sync.size());
}
std::size_t bytes_of(const ImagePartition& partition) {
  return kEntryBytes + kNumberBytes * partition.replicas.size() +
         3 * kNumberBytes * (partition.isr.size() + partition.elr.size());
}
std::size_t bytes_of(const PartitionDescription& partition) {
  std::size_t notes = 0;
  for (const auto& one : partition.replica_notes) notes += 2 * kNumberBytes + one.text.size();
  return kEntryBytes + partition.note.size() + notes +
         kNumberBytes * (partition.replicas.size() + partition.in_sync.size() +
                         3 * partition.followers.size());
}
std::size_t bytes_of(const TopicSummary& topic) { return kEntryBytes + topic.name.size(); }
std::size_t bytes_of(const TopicMetadata& topic) {
  return kEntryBytes + topic.name.size() + topic.status.text.size();
}
std::size_t bytes_of(const TopicDescription& topic) {
  std::size_t bytes = kEntryBytes + topic.name.size() + topic.status.text.size();
  for (const auto& setting : topic.settings) {
    bytes += kEntryBytes + setting.name.size() + setting.value.size() + setting.origin.size();
  }
  return bytes;
}

std::size_t bytes_of(const ImageTopic& topic) {
  std::size_t bytes = kEntryBytes + topic.name.size();
  for (const auto& [name, value] : topic.overrides) {
    bytes += kEntryBytes + name.size() + value.size();
  }
  return bytes;
}
std::size_t bytes_of(const ImageBroker& broker) { return kEntryBytes + broker.host.size(); }
std::size_t bytes_of(const base::Uuid&) { return kEntryBytes; }
std::size_t bytes_of(const ImageDamage& damage) {
  return kEntryBytes + damage.path.size() + damage.topic.size() + damage.text.size();
}
std::size_t bytes_of(const DeletingTopic& topic) {
  return kEntryBytes + kNumberBytes * topic.brokers.size();
}

/// A topic without its partitions: of a piece that goes on with it, only what names it.
TopicMetadata head_of(const TopicMetadata& topic, bool goes_on) {
  TopicMetadata head;
  head.name = topic.name;
  head.id = topic.id;
  head.batch_bytes_max = topic.batch_bytes_max;
  if (!goes_on) head.status = topic.status;
  return head;
}
TopicDescription head_of(const TopicDescription& topic, bool goes_on) {
  TopicDescription head;
  head.name = topic.name;
  head.id = topic.id;
  if (goes_on) return head;
  head.status = topic.status;
  head.settings = topic.settings;
  return head;
}

ImageTopic head_of(const ImageTopic& topic, bool goes_on) {
  ImageTopic head;
  head.name = topic.name;
  head.id = topic.id;
  head.hidden_from = topic.hidden_from;
  if (!goes_on) head.overrides = topic.overrides;
  return head;
}

template <class Response>
class Cutter {
 public:
  explicit Cutter(Response first) : part_(std::move(first)) { empty_.envelope = part_.envelope; }

  /// Makes room for one entry; false if that began a new piece.
  bool fits(std::size_t bytes) {
    const bool full = entries_ > 0 && (entries_ == kPartEntries || bytes_ + bytes > kPartBytes);
    if (full) next();
    ++entries_;
    bytes_ += bytes;
    return !full;
  }
  Response& part() noexcept { return part_; }
  std::vector<std::string> done() {
    parts_.push_back(encode(part_));
    return std::move(parts_);
  }

 private:
  void next() {
    parts_.push_back(encode(part_));
    part_ = empty_;
    entries_ = bytes_ = 0;
  }

  Response empty_;
  Response part_;
  std::size_t entries_ = 0;
  std::size_t bytes_ = 0;
  std::vector<std::string> parts_;
};

/// A list without parts of its own goes on in the next piece.
template <class Response, class Item>
void cut_list(Cutter<Response>& cutter, std::vector<Item> Response::*list,
              const Response& response) {
  for (const Item& item : response.*list) {
    cutter.fits(bytes_of(item));
    (cutter.part().*list).push_back(item);
  }
}

template <class Response>
std::vector<std::string> cut_partitions(Cutter<Response> cutter, const Response& response) {
  for (const auto& topic : response.topics) {
    cutter.fits(bytes_of(topic));
    cutter.part().topics.push_back(head_of(topic, false));
    for (const auto& partition : topic.partitions) {
      if (!cutter.fits(bytes_of(partition))) {
        cutter.fits(bytes_of(topic));
        cutter.part().topics.push_back(head_of(topic, true));
      }
      cutter.part().topics.back().partitions.push_back(partition);
    }
  }
  return cutter.done();
}

/// The same topic again, with partitions that follow: topics that were asked for twice begin anew.
template <class Topic>
bool goes_on_with(const Topic& before, const Topic& next) {
  if (before.id != next.id || before.name != next.name || next.partitions.empty()) return false;
  return before.partitions.empty() ||
         next.partitions.front().partition > before.partitions.back().partition;
}

template <class Topic>
void move_all(std::vector<Topic>& to, std::vector<Topic>& from, std::size_t first = 0) {
  to.insert(to.end(), std::make_move_iterator(from.begin() + static_cast<std::ptrdiff_t>(first)),
            std::make_move_iterator(from.end()));
}

template <class Response>
void join_partitions(Response& whole, Response& part) {
  std::size_t first = 0;
  if (!whole.topics.empty() && !part.topics.empty() &&
      goes_on_with(whole.topics.back(), part.topics.front())) {
    move_all(whole.topics.back().partitions, part.topics.front().partitions);
    first = 1;
  }
  move_all(whole.topics, part.topics, first);
}

}  // namespace

std::vector<std::string> encode_in_parts(const MetadataResponse& response) {
  MetadataResponse first;
  first.envelope = response.envelope;
  first.cluster_id = response.cluster_id;
  first.controller = response.controller;
  first.brokers = response.brokers;
  return cut_partitions(Cutter<MetadataResponse>(std::move(first)), response);
}

std::vector<std::string> encode_in_parts(const DescribeTopicsResponse& response) {
  DescribeTopicsResponse first;
  first.envelope = response.envelope;
  return cut_partitions(Cutter<DescribeTopicsResponse>(std::move(first)), response);
}

std::vector<std::string> encode_in_parts(const ListTopicsResponse& response) {
  ListTopicsResponse first;
  first.envelope = response.envelope;
  Cutter<ListTopicsResponse> cutter(std::move(first));
  cut_list(cutter, &ListTopicsResponse::topics, response);
  return cutter.done();
}

std::vector<std::string> encode_in_parts(const PullImageResponse& response) {
  PullImageResponse first;
  first.envelope = response.envelope;
  first.version = response.version;
  first.base_version = response.base_version;
  first.cluster_id = response.cluster_id;
  first.controller = response.controller;
  first.cluster_time = response.cluster_time;
  first.held_ms = response.held_ms;
  first.topic_defaults = response.topic_defaults;
  Cutter<PullImageResponse> cutter(std::move(first));
  cut_list(cutter, &PullImageResponse::brokers, response);
  cut_list(cutter, &PullImageResponse::removed, response);
  cut_list(cutter, &PullImageResponse::deleting, response);
  cut_list(cutter, &PullImageResponse::damage, response);
  return cut_partitions(std::move(cutter), response);
}

void join(MetadataResponse& whole, MetadataResponse part) { join_partitions(whole, part); }
void join(DescribeTopicsResponse& whole, DescribeTopicsResponse part) {
  join_partitions(whole, part);
}
void join(ListTopicsResponse& whole, ListTopicsResponse part) {
  move_all(whole.topics, part.topics);
}
void join(PullImageResponse& whole, PullImageResponse part) {
  move_all(whole.brokers, part.brokers);
  move_all(whole.removed, part.removed);
  move_all(whole.deleting, part.deleting);
  move_all(whole.damage, part.damage);
  join_partitions(whole, part);
}

}  // namespace mq::protocol
