#pragma once

#include <memory>

#include "fake_broker.h"

namespace mq::testing {

struct FakeBroker::Connection {
  Connection(base::Runtime& runtime, std::unique_ptr<base::Stream> s)
      : stream(std::move(s)), reader(*stream, 32 << 20), writer(runtime, *stream) {}
  std::unique_ptr<base::Stream> stream;
  net::FrameReader reader;
  net::FrameWriter writer;
  std::uint64_t instance = 0;
  std::uint64_t number = 0;

  void close() {
    stream->close();
    writer.close();
  }
};

}  // namespace mq::testing
