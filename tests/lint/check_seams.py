"""Real clocks, files, sockets, threads and random devices appear only where the real world is: everything else must also run on
simulated ones."""
import re
from source import Problems, bare, files, line_of, read

RULES = {
    'clock': r'\b(?:steady|system|high_resolution|file|utc|tai|gps)_clock::now\b|\bclock_gettime\b|\bgettimeofday\b'
             r'|(?:\bstd|(?<!\w))::time\s*\(|(?<![\w.>:])time\s*\(\s*(?:NULL|nullptr|0|&)',
    'file': r'(?<![\w>])::(?:open|openat|open64|creat|fopen|fdopen|mkstemp|opendir|mmap|unlink|unlinkat|rename|renameat|mkdir|rmdir'
            r'|fsync|fdatasync|sync_file_range|syncfs|ftruncate|truncate|fallocate|posix_fallocate|flock|lockf|pread|preadv2?|pwrite'
            r'|pwritev2?|read|write|readv|writev|stat|fstat|statvfs|statfs)\s*\('
            r'|\bO_(?:RDONLY|WRONLY|RDWR|CREAT|APPEND|DIRECT)\b|\b(?:fopen|freopen|mkstemp)\s*\('
            r'|\bstd::(?:basic_)?(?:i|o)?(?:fstream|filebuf)\b|\bstd::filesystem::(?!path\b)\w+|\bfs::(?!path\b)\w+\s*\(',
    'socket': r'(?<![\w>])::(?:socket|connect|bind|listen|accept4?|send|recv|sendto|recvfrom|sendmsg|recvmsg|getaddrinfo|epoll_\w+'
              r'|poll|ppoll|select|eventfd|pipe2?|socketpair)\s*\(|\bAF_(?:INET6?|UNIX)\b'
              r'|\bip::(?:tcp|udp)\b|\btcp::(?:socket|acceptor|resolver|endpoint)\b|\bstream_protocol\b|\bstream_descriptor\b',
    'timer': r'\b(?:steady|system|high_resolution|deadline|basic_waitable)_timer\b|\bsignal_set\b|\b(?:stream|random_access)_file\b'
             r'|\btimerfd_\w+|\bio_context\b',
    'thread': r'\bstd::(?:jthread|thread)\b(?!::id)|\bstd::async\b|\bpthread_create\b|\bthread_pool\b|\bthis_thread::sleep_\w+'
              r'|\b(?:usleep|nanosleep|sched_yield)\s*\(|(?<![\w>])::(?:fork|execv\w*|sleep)\s*\(',
    'random': r'\brandom_device\b|\bgetrandom\s*\(|\bgetentropy\s*\(|\bRAND_bytes\b|\barc4random\w*|(?<![\w.>:])s?rand\s*\(|/dev/u?random',
}
COMPILED = {kind: re.compile(pattern) for kind, pattern in RULES.items()}

# Where a kind may appear, and why. A new line here needs a reason as good as these.
HOMES = [
    (r'src/base/real/', set(RULES), 'the real world itself'),
    (r'src/metadata/(sqlite|zookeeper)', set(RULES), 'these libraries do their own I/O on threads of their own'),
    (r'src/broker/service_manager\.cc$', {'file'}, 'asks whether stderr is the journal of systemd'),
    (r'src/client/shell', {'thread', 'clock'}, 'the outer shell of the client: its I/O thread and blocking calls'),
]


def homes(path):
    allowed = set()
    for pattern, kinds, _ in HOMES:
        if re.match(pattern, str(path)):
            allowed |= kinds
    return allowed


def check(root):
    problems = Problems()
    paths = files(root, ['src', 'include'])
    for path in paths:
        text = read(root, path)
        code = bare(text)
        allowed = homes(path)
        for kind, pattern in COMPILED.items():
            if kind in allowed:
                continue
            for match in pattern.finditer(code):
                problems.add(path, line_of(code, match.start()), f'{kind}: "{match.group(0).strip()}" outside its home (src/base/real)')
    return problems.report('seams', len(paths))
