#include "mqctl/verbs/choices.h"

namespace mq::mqctl {

Flag acks_flag(std::string fallback) {
  return {.name = "acks",
          .kind = Kind::choice,
          .value = "HOW",
          .help = "none, leader or all: when a record counts as delivered",
          .choices = {"none", "leader", "all"},
          .fallback = std::move(fallback),
          .complete = Complete::choices};
}

Flag compression_flag(std::string fallback) {
  return {.name = "compression",
          .letter = 'z',
          .kind = Kind::choice,
          .value = "CODEC",
          .help = "none, lz4 or zstd",
          .choices = {"none", "lz4", "zstd"},
          .fallback = std::move(fallback),
          .complete = Complete::choices};
}

Acks acks_of(const std::string& name) {
  return name == "none" ? Acks::none : name == "leader" ? Acks::leader : Acks::all;
}

Compression compression_of(const std::string& name) {
  return name == "lz4" ? Compression::lz4 : name == "zstd" ? Compression::zstd : Compression::none;
}

}  // namespace mq::mqctl
