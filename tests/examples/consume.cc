#include <mq/mq.h>

#include <iostream>

int main() {
  auto consumer = mq::Consumer::create({}).value();
  std::map<mq::TopicPartition, mq::Start> all;
  for (const int partition : consumer.partitions("orders").value())
    all[{"orders", partition}] = {mq::Start::earliest};
  consumer.assign(all).value();
  while (true)
    for (const auto& record : consumer.poll(std::chrono::seconds(1)).value())
      std::cout << record.offset << ' ' << mq::as_text(record.value.value_or(mq::Bytes())) << '\n';
}
