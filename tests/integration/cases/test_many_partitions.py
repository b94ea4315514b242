"""Two thousand partitions on one broker: what a start costs, and that nothing grows with the number of starts."""

import os
import pathlib
import resource
import subprocess
import time
import unittest

from daemon import Case, program

TOPICS, PARTITIONS, RECORDS = 20, 100, 10
STARTS = 10
READY_SECONDS = 30


def read_bytes(pid):
    """What the process has read, from the disk or the page cache."""
    for line in pathlib.Path(f"/proc/{pid}/io").read_text().splitlines():
        if line.startswith("rchar:"):
            return int(line.split()[1])
    raise AssertionError("no rchar")


class ManyPartitions(Case):
    def fill(self, broker):
        lines = b"".join(b"%03d %s\n" % (n, b"x" * 4000) for n in range(PARTITIONS * RECORDS))
        for topic in range(TOPICS):
            broker.create(f"t{topic}", "--partitions", str(PARTITIONS))
            done = broker.ctl("produce", f"t{topic}", "-z", "none", stdin=lines, seconds=60)
            self.assertEqual(done.code, 0, done.err)

    def measure(self, broker):
        pid = broker.process.pid
        files = [path for path in broker.data.rglob("*") if path.is_file()]
        return {
            "read": read_bytes(pid),
            "handles": len(os.listdir(f"/proc/{pid}/fd")),
            "files": len(files),
            "journal bytes": sum(path.stat().st_size for path in files if path.suffix == ".journal"),
            "log bytes": sum(path.stat().st_size for path in files if path.suffix == ".log"),
        }

    def test_ten_starts_cost_the_same_and_read_little(self):
        broker = self.broker().start()
        self.fill(broker)
        seen = []
        for _ in range(STARTS):
            self.assertEqual(broker.stop(), 0)
            begin = time.monotonic()
            broker.start()
            took = time.monotonic() - begin
            self.assertLess(took, READY_SECONDS)
            seen.append(self.measure(broker) | {"ready": round(took, 2)})
        self.assertGreater(seen[0]["log bytes"], 50_000_000)
        for one in seen:
            # No log data: its own state, and at most once the journal, which the run before had written.
            self.assertLess(one["read"], one["log bytes"] / 10 + one["journal bytes"], one)
            self.assertEqual(one["files"], seen[0]["files"], one)
            self.assertLessEqual(one["handles"], seen[0]["handles"] + 5, one)
        self.assertLess(seen[-1]["read"], seen[-1]["log bytes"] / 10, seen[-1])
        self.assertEqual(broker.ctl("consume", "t3", "-e").out.count("\n"), PARTITIONS * RECORDS)
        self.assertEqual(broker.stop(), 0)

        # Too few handles for them: said at once, with the limit and what is needed, and nothing is harmed.
        code, said = self.start_with_handles(broker, 1024)
        self.assertNotEqual(code, 0, said)
        refusals = [line for line in said.splitlines() if " error " in line]
        self.assertEqual(len(refusals), 1, said)
        self.assertRegex(refusals[0], r"1024\b")
        self.assertRegex(refusals[0], r"\b2\d{3}\b")
        broker.start()
        self.assertEqual(broker.ctl("produce", "t7", stdin=b"more\n").code, 0)
        self.assertEqual(broker.ctl("consume", "t7", "-e").out.count("\n"), PARTITIONS * RECORDS + 1)
        self.assertEqual(broker.stop(), 0)

    def start_with_handles(self, broker, limit):
        done = subprocess.run(
            [program("mqbroker"), "--config", str(broker.config)], stdin=subprocess.DEVNULL, capture_output=True, timeout=READY_SECONDS,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)))
        return done.returncode, (done.stdout + done.stderr).decode(errors="replace")


if __name__ == "__main__":
    unittest.main(verbosity=2)
