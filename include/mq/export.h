#pragma once

/// Marks what the shared library shows; everything else in it is hidden.
#define MQ_EXPORT __attribute__((visibility("default")))
