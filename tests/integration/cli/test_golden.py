"""Every verb against a real broker; the transcripts lie beside this file. MQ_UPDATE_GOLDEN=1 writes them anew."""

import json
import os
import pathlib
import re
import unittest

from session import Broker, Session, program, shape_line

GOLDEN = pathlib.Path(__file__).parent / "golden"


class Golden(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.broker = Broker()
        self.addCleanup(self.broker.end)
        self.broker.start()
        self.session = Session(self.broker)

    def compare(self, name):
        path = GOLDEN / f"{name}.txt"
        if os.environ.get("MQ_UPDATE_GOLDEN"):
            GOLDEN.mkdir(exist_ok=True)
            path.write_text(self.session.text)
        self.assertEqual(self.session.text, path.read_text())

    def test_topics(self):
        run = self.session.run
        run("topic", "list")
        run("topic", "list", "-o", "json")
        run("topic", "create", "orders", "--partitions", "2", "--dry-run")
        run("topic", "create", "orders", "--partitions", "2")
        run("topic", "create", "audit", "-c", "durability=memory", "-c", "retention.age=3d", "-o", "json")
        run("topic", "create", "orders")
        run("topic", "create", "orders", "-o", "json")
        run("topic", "create", "orders", "news", "-o", "jsonl")
        run("topic", "create", "x", "-c", "retention.agee=1d")
        run("topic", "create", "x", "-c", "retention.age=soon")
        run("topic", "create", "x", "--replicas", "3")
        run("topic", "create", "a/b")
        run("topic", "list")
        run("topic", "list", "-o", "json", "--fields", "name,partitions")
        run("topic", "list", "-o", "jsonl", "--fields", "name")
        run("topic", "list", "-o", "json", "--fields", "nmae")
        run("topic", "describe", "orders")
        run("topic", "describe", "audit", "-o", "json")
        run("topic", "describe", "ordres")
        run("topic", "describe", "orders", "nowhere", "-o", "json", "--fields", "name,partitions.id")
        run("topic", "delete", "orders")
        run("topic", "delete", "orders", "--dry-run")
        run("topic", "delete", "orders", "--yes")
        run("topic", "delete", "audit", "--yes", "-o", "json")
        run("topic", "delete", "orders", "--yes")
        self.compare("topics")

    def test_produce_and_consume(self):
        run = self.session.run
        run("topic", "create", "orders")
        run("produce", "orders", "-K", ":", "--print", "%t/%p@%o", stdin=b"k1:v1\nk2:v2\nk3:last without newline")
        run("produce", "orders", "-K", ":", stdin=b"k4:v4\nno key\nk5:\n")
        run("consume", "orders", "-e")
        run("produce", "orders", "-Z", "-H", "a=1", "-H", "a=2", stdin=b"\n")
        run("produce", "orders", "-o", "json", stdin=b"null\n")
        run("produce", "orders", "-J", stdin=b'{"key":null,"value":{"base64":"AP8="}}\n{"value":5}\n')
        run("produce", "orders", "/nonexistent/file")
        run("produce", "orders", "-p", "7", stdin=b"x\n")
        run("produce", "ordres", stdin=b"x\n")
        run("produce", "orders", "-z", "none", stdin=b"a\n" + b"z" * 1_200_000 + b"\nb\n")
        run("consume", "orders", "-e", "-J")
        run("consume", "orders", "-e", "-o", "jsonl", "-o", "-1")
        run("consume", "orders", "-o", "1:3", "-f", "%p %o %k=%v\\n")
        run("consume", "orders", "-e", "-o", "+4", "-f", "%o %k{json} %v{json} %h{json}\\n")
        run("consume", "orders", "-n", "1", "--raw")
        run("consume", "orders", "-e", "-o", "end")
        run("consume", "orders", "-p", "3")
        run("consume", "orders", "-o", "99")
        run("consume", "orders", "-o", "5:x")
        run("consume", "ordres", "-e")
        run("consume", "orders", "-o", "json")
        self.compare("records")

    def test_status(self):
        run = self.session.run
        run("topic", "create", "orders")
        run("status", filtered=lambda out: "".join(l for l in out.splitlines(True) if "warning:" not in l))
        run("status", "-o", "json", filtered=lambda out: shape_line(without_volatile(out)))
        self.assertIn("requests_total", self.broker.ctl("status", "-v").out)
        self.compare("status")

    def test_cluster(self):
        run = self.session.run
        run("topic", "create", "orders", "--partitions", "2")
        no_warnings = dict(filtered=lambda out: "".join(l for l in out.splitlines(True) if "warning:" not in l))
        run("broker", "list", filtered=lambda out: re.sub(r" *; \d+ warnings?| +\d+ warnings?$", "", out))
        run("broker", "list", "-o", "json", filtered=shape_line)
        run("broker", "describe", "1", **no_warnings)
        run("broker", "describe", "1", "-o", "json", filtered=lambda out: shape_line(without_volatile(out)))
        run("broker", "describe", "7")
        run("broker", "describe", "x")
        run("partition", "list")
        run("partition", "list", "orders", "--leaderless")
        run("partition", "list", "--broker", "1", "-o", "jsonl")
        run("partition", "list", "nowhere")
        run("partition", "list", "--at-min-isr")
        run("partition", "list", "--skewed")
        run("broker", "can-stop", "1")
        run("partition", "describe", "orders/1")
        run("partition", "describe", "orders/1", "orders/9", "nowhere/0", "-o", "json")
        run("partition", "describe", "orders")
        run("health")
        run("health", "--level", "1", "-o", "json")
        run("health", "--wait", "500ms", "-b", "127.0.0.1:1")
        run("config", "show", "--changed")
        run("config", "show", "1", "9", "-o", "jsonl", "--fields", "key,origin", filtered=lambda out: out.splitlines()[0])
        self.compare("cluster")

    def test_mistakes(self):
        run = self.session.run
        run("topic", "lsit")
        run("topc", "list")
        run("group", "lag", "billing")
        run("topic", "create", "x", "-w")
        run("topic", "list", "-w", "-o", "json")
        run("topic", "list", "--until", "healthy")
        run("topic", "add-partitions", "x")
        run("topic", "list", "-o", "tsv")
        run("topic", "create", "--partitions", "x", "t")
        run("topic", "create", "--partitions", "x", "t", "-o", "json")
        run("status", "--timeout", "10")
        run("status", "--brokers", "host:99999")
        run("error", "explain", "UNREACHABEL")
        run("-b", "127.0.0.1:1", "topic", "list")
        self.compare("mistakes")

    def test_broker_that_is_away(self):
        run = self.session.run
        run("topic", "create", "orders")
        self.broker.stop()
        for words in (("status",), ("topic", "create", "x"), ("topic", "delete", "orders", "--yes"),
                      ("produce", "orders"), ("consume", "orders", "-e"), ("topic", "list", "-o", "json")):
            run(*words, "--timeout", "1s", stdin=b"x\n")
        self.compare("away")

    def test_configuration(self):
        good = self.broker.config
        bad = self.broker.folder / "bad.toml"
        bad.write_text('[broker]\nidd = 1\nmetadata = "local"\n[[storage.disk]]\npath = 5\n')
        run = self.session.run
        run("config", "validate", str(good))
        run("config", "validate", str(bad))
        run("config", "validate", str(bad), "-o", "json", filtered=shape_line)
        run("config", "validate", str(self.broker.folder / "none.toml"))
        self.compare("config")

    def test_logs_offline(self):
        run = self.session.run
        run("topic", "create", "orders")
        for line in (b"k1:v1\n", b"k2:v2\n"):
            run("produce", "orders", "-K", ":", "-z", "none", "-q", stdin=line)
        run("log", "verify", str(self.broker.data))
        self.broker.stop()
        run("log", "verify", str(self.broker.data), "-o", "json")
        run("log", "dump", str(self.broker.data), "--records")
        # How many groups there are depends on the moment; unit tests have their text.
        shown = self.broker.ctl("log", "dump", str(self.broker.data / "journal"))
        self.assertEqual(shown.code, 0)
        self.assertRegex(shown.out, r"journal byte 4096  group \d+  generation \d+  entries 2 ")
        self.assertIn("  snapshot  1 partitions, ", shown.out)
        self.assertRegex(shown.out, r"journal ends at byte \d+: nothing was written there")
        segment = next(self.broker.data.glob("**/*.log"))
        content = bytearray(segment.read_bytes())
        content[110] ^= 1
        segment.write_bytes(content)
        run("log", "verify", str(self.broker.data))
        run("log", "verify", str(self.broker.data), "-o", "json")
        run("log", "dump", str(self.broker.data))
        run("log", "verify", str(self.broker.folder / "none"))
        (self.broker.folder / "empty").mkdir()
        run("log", "verify", str(self.broker.folder / "empty"))
        (self.broker.data / "journal").rename(self.broker.folder / "fast")
        run("log", "verify", str(segment.parent))
        run("log", "verify", str(self.broker.data), "--journal", str(self.broker.folder / "fast"))
        (self.broker.folder / "fast").rename(self.broker.data / "journal")
        for name in ("0000.journal", "0001.journal"):
            file = self.broker.data / "journal" / name
            file.write_bytes(b"\0" * file.stat().st_size)
        run("log", "verify", str(self.broker.data))
        run("log", "truncate", str(segment.parent), "--after", "0", "--yes")
        self.compare("logs")

    def test_logs_are_searched_and_cut_offline(self):
        run = self.session.run
        run("topic", "create", "orders")
        for line in (b"k1:v1\n", b"k2:v2\n", b"k1:v3\n"):
            run("produce", "orders", "-K", ":", "-z", "none", "-q", stdin=line)
        data = str(self.broker.data)
        run("log", "segments", data)
        run("log", "index-rebuild", data)
        self.broker.stop()
        partition = str(next(self.broker.data.glob("*-0")))
        run("log", "segments", data, "-o", "json")
        run("log", "find", data, "--key", "k1")
        run("log", "find", partition, "--offset", "1", "-o", "json")
        run("log", "find", data, "--time", "-1h", "--count", "1")
        run("log", "find", data, "--time", "now")
        run("log", "find", data, "--key", "k9", "-o", "json")
        run("log", "find", data)
        run("log", "find", data, "--time", "soon")
        run("log", "index-rebuild", data, "-o", "json")
        run("log", "truncate", data, "--after", "0", "--yes")
        run("log", "truncate", partition, "--yes")
        run("log", "truncate", partition, "--after", "7", "--yes")
        run("log", "truncate", partition, "--after", "1", "--dry-run")
        run("log", "truncate", partition, "--after", "1")
        run("log", "truncate", partition, "--after", "1", "--yes", "-o", "json")
        run("log", "truncate", partition, "--after", "0", "--yes")
        run("log", "truncate", partition, "--after", "0", "--yes")
        self.broker.start()
        run("consume", "orders", "-e", "-f", "%o %v\\n")
        self.compare("repair")

    def test_times_and_trim(self):
        run = self.session.run
        run("topic", "create", "orders", "--partitions", "2")
        for line in (b"k1:v1\n", b"k2:v2\n", b"k3:v3\n"):
            run("produce", "orders", "-p", "0", "-K", ":", "-q", stdin=line)
        run("consume", "orders", "-e", "-o", "@-1h", "-f", "%p@%o %v\\n")
        run("consume", "orders", "-e", "-o", "@-1h:now", "-f", "%p@%o %v\\n")
        run("consume", "orders", "-e", "-o", "@now")
        run("consume", "orders", "-o", "@yesterday")
        run("topic", "trim", "orders", "--yes")
        run("topic", "trim", "orders", "--to", "1:2", "--yes")
        run("topic", "trim", "orders", "--to", "1", "--yes")
        run("topic", "trim", "orders", "-p", "0", "--to", "9", "--yes")
        run("topic", "trim", "orders", "-p", "7", "--to", "end", "--yes")
        run("topic", "trim", "orders", "-p", "0", "--to", "1", "--dry-run")
        run("topic", "trim", "orders", "-p", "0", "--to", "1")
        run("topic", "trim", "orders", "-p", "0", "--to", "1", "--yes", "-o", "json")
        run("consume", "orders", "-e", "-p", "0", "-f", "%o\\n")
        run("consume", "orders", "-e", "-p", "0", "-o", "0")
        run("topic", "trim", "orders", "--to", "@now", "--yes")
        run("topic", "trim", "ordres", "--to", "end", "--yes")
        run("topic", "describe", "orders", "-o", "json", "--fields", "partitions.log_start_offset")
        run("broker", "disks")
        run("broker", "disks", "-o", "json", "--fields", "broker,path,id,state,reason,partitions")
        run("broker", "disks", "7")
        self.compare("trim")

    def test_benchmarks(self):
        run = self.session.run
        run("bench", "produce", "--records", "1000", "--record-bytes", "100B")
        run("bench", "produce", "--records", "100", "--rate", "1000", "-o", "json")
        run("bench", "consume", "--bytes", "1MiB")
        run("bench", "e2e", "--records", "100", "-o", "json")
        run("bench", "produce", "--topic", "nowhere", "--records", "1")
        run("topic", "list")
        self.compare("bench")

    def test_schemas_match_what_is_printed(self):
        """The keys of each item are those that --schema promises, in that order."""
        self.broker.create("orders")
        self.broker.ctl("produce", "orders", stdin=b"x\n")
        for words in (("status",), ("topic", "list"), ("topic", "describe", "orders"),
                      ("topic", "create", "other"), ("topic", "delete", "other", "--yes"),
                      ("produce", "orders"), ("error", "explain", "USAGE"), ("version",),
                      ("bench", "produce", "--records", "10"), ("bench", "consume", "--bytes", "1KiB"),
                      ("bench", "e2e", "--records", "10"), ("config", "validate", str(self.broker.config)),
                      ("log", "verify", str(self.broker.data)), ("log", "segments", str(self.broker.data)),
                      ("log", "find", str(self.broker.data), "--offset", "0"), ("broker", "disks"),
                      ("topic", "trim", "orders", "--to", "end", "--yes")):
            printed = json.loads(self.broker.ctl(*words, "-o", "json").out)
            promised = json.loads(self.broker.ctl(*words, "--schema").out)
            self.assertEqual(printed["schema"], promised["schema"])
            self.assertEqual(list(printed["items"][0]), list(promised["items"][0]), words)
            self.assertEqual(printed["errors"], [], words)

    def test_it_is_quick(self):
        """The promise is 50 ms near a broker; a loaded machine gets some slack, a JVM's start would not pass."""
        import time
        best = min(self.timed(time, "topic", "list") for _ in range(5))
        self.assertLess(best, 0.2)

    def timed(self, time, *words):
        start = time.monotonic()
        self.assertEqual(self.broker.ctl(*words).code, 0)
        return time.monotonic() - start


def without_volatile(out):
    """The counters are the broker's own matter, and what it warns about depends on the machine."""
    status = json.loads(out)
    for item in status["items"]:
        item["counters"] = {}
        item["warnings"] = []
    return json.dumps(status)


if __name__ == "__main__":
    assert pathlib.Path(program("mqctl")).exists(), "set MQ_BIN"
    unittest.main(verbosity=2)
