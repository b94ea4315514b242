#pragma once

#define MQ_VERSION_MAJOR 0
#define MQ_VERSION_MINOR 1
#define MQ_VERSION_PATCH 0
#define MQ_VERSION_TEXT "0.1.0"
