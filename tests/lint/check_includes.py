"""Includes go down only: which folder may include which, and which third-party header has its home where."""
import re
from source import Problems, bare, files, line_of, read

# What each folder may include directly; the table is transitive.
BELOW = {
    'broker': {'controller', 'coordinator', 'replication', 'net', 'config', 'storage', 'metadata', 'protocol'},
    'mqctl': {'client', 'config', 'storage'},
    'controller': {'replication', 'metadata', 'net', 'protocol'},
    'coordinator': {'replication', 'metadata', 'net', 'protocol'},
    'client': {'net', 'protocol'},
    'replication': {'storage', 'metadata', 'net', 'protocol'},
    'net': {'protocol'},
    'config': {'model'},
    'storage': {'model'},
    'metadata': {'protocol'},
    'protocol': {'model'},
    'model': {'base'},
    'base': {'mq'},
    'mq': set(),
}
# The command line looks into a data directory only where it works offline.
OFFLINE = re.compile(r'tools/mqctl/([^/]*/)*(log|bench_storage|storage)[^/]*\.(cc|h)$')

# Coroutine vocabulary of Asio; everything else of it (sockets, timers, contexts) lives in base.
ASIO_WORDS = re.compile(
    r'boost/asio/(awaitable|any_io_executor|any_completion_handler|append|as_tuple|associated_\w+|async_result|bind_\w+|'
    r'cancellation_\w+|co_spawn|compose|consign|deferred|detached|dispatch|error|executor|post|prepend|redirect_error|'
    r'strand|this_coro|use_awaitable|experimental/(awaitable_operators|parallel_group))\.hpp$')

# (header, folders where it may stand, whether a header file may include it)
THIRD_PARTY = [
    (re.compile(r'boost/asio(/|\.hpp)'), {'base'}, True),
    (re.compile(r'isa-l'), {'base'}, False),
    (re.compile(r'xxhash\.h|xxh3\.h'), {'base'}, False),
    (re.compile(r'spdlog/'), {'base'}, False),
    (re.compile(r'(lz4|zstd|zdict)[\w]*\.h$'), {'model'}, False),
    (re.compile(r'google/protobuf/|.*\.pb\.h$'), {'protocol', 'metadata'}, False),
    (re.compile(r'sqlite3\.h|zookeeper/'), {'metadata'}, False),
    (re.compile(r'toml\+\+/'), {'config'}, False),
    (re.compile(r'nlohmann/'), {'mqctl'}, False),
]
# Headers that exist to be included by their folder's .cc files and by nothing else may hold what other headers may not.
INTERNAL = {'src/protocol/codec.h', 'src/protocol/partition_codec.h', 'src/protocol/topics_codec.h'}
PUBLIC_FORBIDDEN = re.compile(r'.*/|.*\.h$|.*\.hpp$')  # the standard library's headers have neither slash nor suffix
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)', re.M)


def closure(folder, seen=None):
    seen = set() if seen is None else seen
    for below in BELOW.get(folder, ()):
        if below not in seen:
            seen.add(below)
            closure(below, seen)
    return seen


def folder_of(path):
    parts = path.parts
    if parts[0] == 'tools':
        return 'mqctl'
    return 'mq' if parts[0] == 'include' else parts[1]


def third_party(path, folder, header, is_header):
    """None, or what is wrong with this system include."""
    name = str(path)
    if folder == 'mq':
        return None if not PUBLIC_FORBIDDEN.match(header) else f'<{header}>: public headers use the standard library only'
    if ASIO_WORDS.match(header):
        return None
    if header.startswith('CLI/'):
        if folder == 'mqctl' or name == 'src/broker/main.cc':
            return f'<{header}> belongs in a .cc file' if is_header else None
        return f'<{header}> has its home in tools/mqctl and src/broker/main.cc'
    if header.startswith('systemd/'):
        return None if folder == 'broker' and not is_header else f'<{header}> has its home in one file of src/broker'
    for pattern, homes, in_header in THIRD_PARTY:
        if not pattern.match(header):
            continue
        if folder not in homes:
            return f'<{header}> has its home in {", ".join(sorted(homes))}'
        if is_header and not in_header:
            return f'<{header}> belongs in a .cc file, not in a header'
        return None
    return None


def check(root):
    problems = Problems()
    paths = files(root, ['src', 'include', 'tools/mqctl'])
    systemd_users = set()
    for path in paths:
        if path.parts[0] == 'src' and len(path.parts) < 3:
            continue
        folder = folder_of(path)
        if folder not in BELOW:
            problems.add(path, 1, f'folder {folder} is not in the table of tests/lint/check_includes.py')
            continue
        text = read(root, path)
        visible = bare(text)
        is_header = path.suffix == '.h' and str(path) not in INTERNAL
        allowed = closure(folder) | {folder}
        if folder == 'mqctl' and not OFFLINE.match(str(path)):
            allowed = allowed - {'storage'}
        for match in INCLUDE.finditer(text):
            if visible[match.start():match.end()].strip()[:1] != '#':
                continue  # inside a comment
            line = line_of(text, match.start(0) if text[match.start()] != '\n' else match.start() + 1)
            quoted, system = match.groups()
            if quoted is None:
                wrong = third_party(path, folder, system, is_header)
                if wrong:
                    problems.add(path, line, wrong)
                if system.startswith('systemd/'):
                    systemd_users.add(path)
                continue
            if quoted.endswith('.pb.h'):
                wrong = third_party(path, folder, quoted, is_header)
                if wrong:
                    problems.add(path, line, wrong)
            if is_header and f'src/{quoted}' in INTERNAL:
                problems.add(path, line, f'"{quoted}" may be included by .cc files only')
            target = quoted.split('/')[0]
            if '/' not in quoted:
                problems.add(path, line, f'"{quoted}": write the folder too, as in "storage/segment.h"')
            elif target not in BELOW:
                problems.add(path, line, f'"{quoted}" is in no known folder')
            elif target not in allowed:
                problems.add(path, line, f'{folder} may not include {target} ("{quoted}")')
    for path in sorted(systemd_users)[1:]:
        problems.add(path, 1, f'libsystemd is used by {sorted(systemd_users)[0]} already; one file only')
    return problems.report('include direction', len(paths))
