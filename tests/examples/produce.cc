#include <mq/mq.h>

#include <iostream>

int main() {
  auto producer = mq::Producer::create({}).value();
  const auto report = [](mq::Result<mq::Delivery> result) {
    if (!result) std::cerr << to_string(result.error()) << '\n';
  };
  for (int i = 0; i < 10; ++i)
    producer.send(mq::Record("orders").key(std::to_string(i)).value("paid"), report).value();
  producer.flush(std::chrono::seconds(10)).value();
}
