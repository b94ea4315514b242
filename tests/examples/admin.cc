#include <mq/mq.h>

#include <iostream>

int main() {
  auto admin = mq::Admin::create({}).value();
  mq::NewTopic orders("orders");
  orders.partitions = 6;
  orders.config = {{"retention.age", "7d"}};
  for (const auto& [name, outcome] : admin.create_topics({orders}))
    if (!outcome) std::cerr << name << ": " << to_string(outcome.error()) << '\n';
  for (const auto& topic : admin.list_topics().value())
    std::cout << topic.name << ' ' << topic.partitions << '\n';
}
