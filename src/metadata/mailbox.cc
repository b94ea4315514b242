#include "metadata/mailbox.h"

namespace mq::metadata {

void Mailbox::post(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  if (!open_) return;
  runtime_.post([self = shared_from_this(), work = std::move(work)] {
    if (self->open()) work();
  });
}

void Mailbox::close() {
  const std::lock_guard lock(mutex_);
  open_ = false;
}

bool Mailbox::open() {
  const std::lock_guard lock(mutex_);
  return open_;
}

}  // namespace mq::metadata
