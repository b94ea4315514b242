"""Runs mqctl commands and writes them down as a transcript in which everything that differs from run to run is replaced."""

import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "cases"))
from daemon import Broker, program  # noqa: E402

NUMBER = r"[0-9][0-9,]*(?:\.[0-9]+)?"
REPLACED = [
    (re.compile(r"\b[0-9a-f]{32}\b"), "UUID"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"), "TIME"),
    (re.compile(r"mqctl-bench-\d+-[0-9a-f]+"), "mqctl-bench-X"),
    (re.compile(rf"\b{NUMBER} (?:ms|s)\b"), "DURATION"),
    (re.compile(rf"\b{NUMBER} (?:[KMGT]iB|B)\b"), "SIZE"),
    (re.compile(rf"\b{NUMBER} records/s   "), "RATE records/s   "),
    (re.compile(r"\(want [0-9a-f]+, got [0-9a-f]+\)"), "(want X, got Y)"),
    (re.compile(r'"want":\d+,"got":\d+'), '"want":X,"got":Y'),
    (re.compile(r"\bpid \d+"), "pid PID"),
    (re.compile(r"\bup +\d\S*"), "up AGE"),
    (re.compile(r"\bregistration -?\d+"), "registration N"),
    (re.compile(r"\bv\d+\.\d+\.\d+\b"), "vVERSION"),
    (re.compile(r"\b\d+% full"), "N% full"),
    (re.compile(r'"(ack_p99_ms|duration_ms|records_per_second|mib_per_second|latency_\w+_us|\w+_cpu_seconds|'
                r'\w+_cpu_seconds_per_gib)":[-0-9.e+]+'), r'"\1":NUMBER'),
    (re.compile(r"[ \t]+(?=\n)"), ""),
]


def normal(text, broker):
    text = text.replace(broker.address, "BROKER").replace(str(broker.folder), "FOLDER")
    text = re.sub(rf"\b{broker.port}\b", "PORT", text)
    for pattern, by in REPLACED:
        text = pattern.sub(by, text)
    # Columns are as wide as their widest cell, which may be one of those replaced.
    return re.sub(r"(?<=\S) {2,}", "  ", text)


class Session:
    """A transcript: "$ command", stdout, then stderr with "! " before each line, then the exit code if it is not 0."""

    def __init__(self, broker):
        self.broker = broker
        self.text = ""

    def run(self, *words, stdin=b"", filtered=None):
        done = subprocess.run(
            [program("mqctl"), *words], input=stdin, capture_output=True, timeout=60,
            env={"HOME": "/nonexistent", "PATH": "/usr/bin:/bin", "MQCTL_BROKERS": self.broker.address})
        out, err = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
        if filtered:
            out = filtered(out)
        command = " ".join(f"'{w}'" if not w or re.search(r"[\s:%*\\]", w) else w for w in words)
        block = f"$ mqctl {command}\n" + out
        if out and not out.endswith("\n"):
            block += "<no newline>\n"
        block += "".join(f"! {line}\n" for line in err.splitlines())
        if done.returncode:
            block += f"[exit {done.returncode}]\n"
        self.text += normal(block, self.broker) + "\n"
        return done


def shape_of(value):
    """JSON with the type in place of each value: what a script may rely on when the values vary."""
    if isinstance(value, dict):
        return {key: shape_of(member) for key, member in value.items()}
    if isinstance(value, list):
        return [shape_of(value[0])] if value else []
    return {bool: "bool", int: "int", float: "float", str: "string", type(None): None}[type(value)]


def shape_line(out):
    return json.dumps(shape_of(json.loads(out))) + "\n"


__all__ = ["Broker", "Session", "normal", "program", "shape_line"]
