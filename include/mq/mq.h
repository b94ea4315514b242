#pragma once

/// The whole public API. Each header also stands alone.

#include "mq/admin.h"     // IWYU pragma: export
#include "mq/config.h"    // IWYU pragma: export
#include "mq/consumer.h"  // IWYU pragma: export
#include "mq/producer.h"  // IWYU pragma: export
#include "mq/record.h"    // IWYU pragma: export
#include "mq/result.h"    // IWYU pragma: export
