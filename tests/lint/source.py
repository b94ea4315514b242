"""What every check shares: finding the files, and a view of a C++ file without comments and literals."""
import os
import re
import sys
from pathlib import Path

CODE = ('.h', '.cc', '.def')
SKIPPED = {'build', '.git', '.cache', 'fixtures'}


class Problems:
    """Collects `file:line: text`; a check has passed when there are none."""

    def __init__(self):
        self.lines = []

    def add(self, path, line, text):
        self.lines.append(f'{path}:{line}: {text}')

    def report(self, name, seen):
        for line in self.lines:
            print(line)
        print(f'{name}: {seen} files, {len(self.lines)} problems')
        return 1 if self.lines else 0


def files(root, folders, suffixes=CODE):
    """Paths relative to root, sorted; generated and fixture folders are left out."""
    found = []
    for folder in folders:
        for where, inner, names in os.walk(root / folder):
            inner[:] = sorted(d for d in inner if d not in SKIPPED)
            found += [Path(where, n).relative_to(root) for n in names if n.endswith(tuple(suffixes))]
    return sorted(found)


_TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<tag>[^\s()\\]{0,16})\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-zA-Z_])'(?:\\.|[^'\\\n])+'",
    re.S)


def _blank(match):
    text = match.group(0)
    keep = '"' if text[0] in '"R' else "'" if text[0] == "'" else ''
    inner = ''.join('\n' if c == '\n' else ' ' for c in text)
    return keep + inner[1:-1] + keep if keep and '\n' not in text and len(text) > 1 else inner


def bare(text):
    """The same text with comments and literals replaced by spaces: offsets and line numbers stay."""
    return _TOKEN.sub(_blank, text)


def line_of(text, position):
    return text.count('\n', 0, position) + 1


def read(root, path):
    """The text, or nothing where the file is missing: each check then says what it misses in it."""
    if not (root / path).exists():
        return ''
    return (root / path).read_text(encoding='utf-8', errors='replace')


def die(text):
    print(text, file=sys.stderr)
    sys.exit(2)
