"""A recovery that takes long: the service manager is kept informed, finished partitions are served, and a start that is
broken off is gone on with. Reads are slowed down through strace."""

import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cases"))
from daemon import Case, wait_until  # noqa: E402

SKIPPED = 77
PARTITIONS = 8
SLOW = ["strace", "-D", "-f", "-qq", "-o", "/dev/null", "-e", "trace=preadv2"]


class NotifySocket:
    """What a service manager hears."""

    def __init__(self, folder):
        self.path = str(pathlib.Path(folder) / "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.messages = []
        # Whoever tells it something waits while too much lies there unread.
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        while True:
            message = self.socket.recv(65536).decode()
            self.messages.append((time.monotonic(), message))

    def hear(self):
        return list(self.messages)

    def said(self, text):
        return [message for _, message in self.hear() if text in message]


class SlowRecovery(Case):
    def records(self, one, partition):
        done = one.ctl("consume", "t", "-p", str(partition), "-e", seconds=60)
        self.assertEqual(done.code, 0, done.err)
        return len(done.raw.splitlines())

    def begin(self, delay_ms, later=5000):
        """A broker whose logs are not synced, after a kill -9; its next start reads slowly. The second half of the
        partitions has `later` records each, the first half 5,000."""
        folder = tempfile.mkdtemp(prefix="mq-notify-")
        self.addCleanup(shutil.rmtree, folder, True)
        one = self.broker().start()
        one.create("t", "--partitions", str(PARTITIONS), "--config", "durability=memory")
        for partition in range(PARTITIONS):
            count = later if partition >= PARTITIONS // 2 else 5000
            lines = b"".join(b"%d %06d %s\n" % (partition, n, b"x" * 990) for n in range(count))
            done = one.ctl("produce", "t", "-p", str(partition), "-z", "none", stdin=lines)
            self.assertEqual(done.code, 0, done.err)
        one.kill9()
        self.notify = NotifySocket(folder)
        one.environment = {"NOTIFY_SOCKET": self.notify.path}
        one.wrapper = [*SLOW, "-e", f"inject=preadv2:delay_enter={delay_ms * 1000}"]
        return one

    def recovering(self, one):
        done = one.ctl("--timeout", "2s", "status", "-o", "json")
        if done.code != 0:
            return None
        brokers = json.loads(done.out)["items"]
        return brokers[0] if brokers else None  # it is slow to answer, too

    def test_it_is_told_and_finished_partitions_are_served(self):
        # Every command costs the slowed broker a few reads, too: the later half must be long enough for all of them.
        later = 26000
        one = self.begin(250, later)
        one.launch()
        wait_until(lambda: self.notify.said("STATUS=recovering: "), 60, "progress")
        wait_until(lambda: (item := self.recovering(one)) and 0 < item["partitions_recovering"] < PARTITIONS - 1, 60,
                   "some partitions are there and some are not")
        self.assertFalse(self.notify.said("READY=1"), "not before the last one is there")
        self.assertIn("recovering after an unclean stop", one.ctl("status").out)
        notes = {partition["id"]: partition["note"] for partition in one.describe("t")["partitions"]}
        served = next(number for number, note in notes.items() if note == "")
        refused = next(number for number, note in reversed(notes.items()) if note != "")
        self.assertIn("recovered", notes[refused])
        listed = {item["partition"]: item for item in json.loads(one.ctl("partition", "list", "-o", "json").out)["items"]}
        self.assertEqual((listed[served]["leader"], listed[refused]["leader"]), (1, -1), "nobody leads it yet")
        self.assertIn("is being recovered", listed[refused]["note"])
        done = one.ctl("--timeout", "1s", "consume", "t", "-p", str(refused), "-n", "1", "-e")
        self.assertIn("PARTITION_RECOVERING", done.err)
        self.assertIn("PARTITION_RECOVERING", one.ctl("--timeout", "1s", "topic", "create", "u").err)
        done = one.ctl("consume", "t", "-p", str(served), "-n", "1", "-e")
        self.assertTrue(done.out.startswith(f"{served} 000000 "), done.err)
        self.assertFalse(self.notify.said("READY=1"), "it was asked in the middle of the recovery")
        # Whoever has time waits and is served.
        done = one.ctl("--timeout", "60s", "produce", "t", "-p", str(PARTITIONS - 1), stdin=b"late\n", seconds=70)
        self.assertEqual(done.code, 0, done.err)
        wait_until(lambda: self.notify.said("READY=1"), 60, "ready")
        heard = self.notify.hear()
        extended = [at for at, message in heard if "EXTEND_TIMEOUT_USEC=" in message and "recovering" in message]
        self.assertGreater(len(extended), 2)
        status = self.notify.said("STATUS=recovering: ")[-1]
        self.assertRegex(status, r"recovering: \d of 8 partitions done, [\d.]+ [KMG]iB read")
        for partition in range(PARTITIONS):
            count = later if partition >= PARTITIONS // 2 else 5000
            self.assertEqual(self.records(one, partition), count + (partition == PARTITIONS - 1))
        self.assertEqual(one.stop(), 0)

    def test_the_next_start_goes_on(self):
        one = self.begin(600)
        one.launch()
        wait_until(lambda: (item := self.recovering(one)) and 0 < item["partitions_recovering"] <= PARTITIONS // 2, 60,
                   "half of them are there")
        # What is done is written down every five seconds.
        time.sleep(6)
        one.kill9()
        one.wrapper = []
        mark = len(one.log())
        one.start()
        read = int(re.search(r"\((\d+) bytes of log read", one.log()[mark:]).group(1))
        self.assertLess(read, PARTITIONS * 5_000_000 * 2 // 3, "not all of it once more")
        for partition in range(PARTITIONS):
            self.assertEqual(self.records(one, partition), 5000)

    def test_a_stop_in_the_middle_ends_at_once(self):
        one = self.begin(600)
        one.launch()
        wait_until(lambda: self.notify.said("STATUS=recovering: "), 60, "progress")
        began = time.monotonic()
        self.assertEqual(one.stop(), 0)
        self.assertLess(time.monotonic() - began, 5)
        one.wrapper = []
        one.start()
        self.assertEqual(self.records(one, 3), 5000)


if __name__ == "__main__":
    probe = shutil.which("strace") and subprocess.run([*SLOW, "true"], capture_output=True, timeout=20).returncode == 0
    if not probe:
        print("needs strace, and to be allowed to trace")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
