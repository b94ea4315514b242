"""Writers and readers of a run: the program fault_load, and what it has seen (history.py)."""

import os
import pathlib
import subprocess
import tempfile

from daemon import BIN

PROGRAM = os.environ.get("MQ_LOAD", str(BIN.parent / "tests/integration/faults/fault_load"))


class Load:
    """Four idempotent writers (acks=all), each with so many records a second, and a reader of all partitions."""

    def __init__(self, brokers, topics, partitions, writers=4, rate=250, first=0, value_bytes=300, environment=()):
        self.environment = os.environ | {"MQ_LOAD_BYTES": str(value_bytes)} | dict(environment)
        self.words = [PROGRAM, brokers, ",".join(topics), str(partitions), str(writers), str(rate), str(first)]
        self.file = tempfile.TemporaryFile(mode="w+", prefix="mq-load-")
        self.errors = tempfile.TemporaryFile(mode="w+", prefix="mq-load-")
        self.process = subprocess.Popen(self.words, stdin=subprocess.DEVNULL, stdout=self.file, stderr=self.errors,
                                        env=self.environment)
        self.counted = 0
        self.read_to = 0

    def acknowledged(self):
        """How many so far."""
        text = os.pread(self.file.fileno(), 1 << 26, self.read_to)
        whole = text.rfind(b"\n") + 1
        self.read_to += whole
        self.counted += sum(1 for line in text[:whole].splitlines() if line.startswith(b"a "))
        return self.counted

    def stop(self):
        """Every record has its result then."""
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(timeout=120)
        return self.lines()

    def lines(self):
        size = self.file.seek(0, os.SEEK_END)
        return os.pread(self.file.fileno(), size, 0).decode().splitlines()

    def said(self):
        self.errors.seek(0)
        return self.errors.read()

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(timeout=30)
        self.file.close()
        self.errors.close()


def drain(brokers, topics, partitions, value_bytes=300):
    """All that is there."""
    done = subprocess.run([PROGRAM, brokers, ",".join(topics), str(partitions), "drain"], capture_output=True, text=True, timeout=150,
                          env=os.environ | {"MQ_LOAD_BYTES": str(value_bytes)})
    if done.returncode != 0:
        raise AssertionError(f"not everything can be read: {done.stderr}")
    return done.stdout.splitlines()


def available():
    return pathlib.Path(PROGRAM).exists()
