# shellcheck shell=bash
# What every part of tools/dev uses. Sourced, with `here` and `root` set.

say() { printf '%s\n' "-- $*" >&2; }

# fail CODE TEXT: one line, then out.
fail() {
  printf 'tools/dev: %s\n' "$2" >&2
  exit "$1"
}

# The folder that holds build/PRESET. A checkout that belongs to somebody else (root built it first, or it is mounted from
# outside) is left alone, so that no file ends up in it that its owner cannot replace.
build_root() {
  if [ -n "${MQ_BUILD_ROOT:-}" ]; then
    printf '%s\n' "$MQ_BUILD_ROOT"
  elif [ -O "$root" ] && { [ ! -e "$root/build" ] || [ -O "$root/build" ]; }; then
    printf '%s\n' "$root/build"
  else
    local cache=${XDG_CACHE_HOME:-${HOME:-}/.cache}
    if [ "$cache" = /.cache ]; then cache=${TMPDIR:-/tmp}/mq-cache-$(id -u); fi
    printf '%s/mq/%s\n' "$cache" "$(printf '%s' "$root" | sha256sum | cut -c1-12)"
  fi
}

# One job per core, but no more than one per 1.2 GiB of memory: a coroutine-heavy file takes about that much in the compiler.
build_jobs() {
  local cores kib by_memory
  cores=$(nproc)
  kib=$(awk '/^MemAvailable:/ {print $2}' /proc/meminfo)
  by_memory=$((kib / 1258291))
  if [ "$by_memory" -lt 1 ]; then by_memory=1; fi
  if [ "$by_memory" -lt "$cores" ]; then echo "$by_memory"; else echo "$cores"; fi
}

seconds_since() { echo $((SECONDS - $1)); }
