"""Null, empty and binary keys and values stay what they are, and topic names."""

import base64
import json
import unittest

from daemon import Case

NAME_MAX = 249


def read_json(broker, topic):
    done = broker.ctl("consume", topic, "-e", "-J")
    assert done.code == 0, done.err
    return [json.loads(line) for line in done.out.splitlines()], done.raw


def bytes_of(field):
    if field is None:
        return None
    return base64.b64decode(field["base64"]) if isinstance(field, dict) else field.encode()


class RoundTrip(Case):
    # LOG-7
    def test_absent_empty_the_word_null_and_binary_stay_distinct(self):
        broker = self.broker().start()
        broker.create("t", "--partitions", "1")
        broker.create("copy", "--partitions", "1")
        records = [
            {"key": None, "value": None},
            {"key": "", "value": ""},
            {"key": "null", "value": "null"},
            {"key": {"base64": base64.b64encode(bytes(range(256))).decode()},
             "value": {"base64": base64.b64encode(bytes(range(255, -1, -1))).decode()}},
            {"key": "line\nbreak", "value": "tab\tand \x00 and \u20ac"},
            {"key": "k", "value": {"base64": base64.b64encode(b"broken \xff\xfe utf-8 \xc3").decode()}},
            {"key": "big", "value": "x" * 900_000},
            {"key": "h", "value": "v", "headers": [{"name": "a", "value": "1"}, {"name": "a", "value": None},
                                                   {"name": "a", "value": ""}]},
        ]
        text = "".join(json.dumps(record) + "\n" for record in records).encode()
        done = broker.ctl("produce", "t", "--json", stdin=text)
        self.assertEqual(done.code, 0, done.err)
        first, raw = read_json(broker, "t")
        self.assertEqual(len(first), len(records))
        for sent, got in zip(records, first):
            self.assertEqual(bytes_of(got["key"]), bytes_of(sent["key"]))
            self.assertEqual(bytes_of(got["value"]), bytes_of(sent["value"]))
            self.assertEqual(got["headers"], sent.get("headers", []))
        # What is printed can be written again and is the same.
        done = broker.ctl("produce", "copy", "--json", stdin=raw)
        self.assertEqual(done.code, 0, done.err)
        second, _ = read_json(broker, "copy")
        for one, other in zip(first, second):
            for field in ("key", "value", "headers", "offset"):
                self.assertEqual(one[field], other[field])

    def test_text_form_prints_raw_bytes(self):
        broker = self.broker().start()
        broker.create("t", "--partitions", "1")
        data = bytes(range(256)) * 3
        self.assertEqual(broker.ctl("produce", "t", "--framing", "chunk", stdin=data).code, 0)
        self.assertEqual(broker.ctl("consume", "t", "-e", "--raw").raw, data)

    def test_last_line_without_newline_is_sent(self):
        broker = self.broker().start()
        broker.create("t", "--partitions", "1")
        self.assertEqual(broker.ctl("produce", "t", stdin=b"one\ntwo").code, 0)
        self.assertEqual(broker.ctl("consume", "t", "-e").out, "one\ntwo\n")


class TopicNames(Case):
    def test_names_are_refused_by_rule_or_survive_the_whole_round(self):
        broker = self.broker().start()
        good = ["a", "b" * 100, "c" * NAME_MAX, "Case", "case", "dot.name", "dot_name", "0-9"]
        bad = ["d" * (NAME_MAX + 1), "e" * 255, ".", "..", "a/b", "a b", "", "\u00e9", "%2e", "__reserved", "a\nb"]
        before = {path.name for path in broker.folder.iterdir()}
        for name in bad:
            done = broker.ctl("topic", "create", "--", name)
            self.assertEqual(done.code, 2, f"{name!r}: {done.code} {done.err}")
        done = broker.ctl("topic", "create", "--", "-x")
        self.assertEqual(done.code, 2, done.err)
        listed = json.loads(broker.ctl("topic", "list", "-o", "json").out)
        self.assertEqual(listed["items"], [])
        for name in good:
            broker.create(name)
            self.assertEqual(broker.ctl("produce", name, stdin=b"v\n").code, 0)
        self.assertEqual(broker.ctl("topic", "create", "case").code, 4)
        broker.stop()
        broker.start()
        for name in good:
            self.assertEqual(broker.ctl("consume", name, "-e").out, "v\n", name)
            self.assertEqual(broker.ctl("topic", "delete", name, "--yes").code, 0, name)
            broker.create(name)
            # PAR-6: a topic made again inherits nothing.
            self.assertEqual(broker.ctl("consume", name, "-e").out, "", name)
        self.assertEqual({path.name for path in broker.folder.iterdir()}, before)

    def test_compaction_by_key_is_refused_and_never_ignored(self):
        broker = self.broker().start()
        for setting in ("cleanup.policy=compact", "compaction=on"):
            done = broker.ctl("topic", "create", "t", "--config", setting)
            self.assertEqual(done.code, 2, done.err)
            self.assertIn(f'"{setting.split("=")[0]}"', done.err)
            self.assertIn("does not compact by key", done.err)
        self.assertEqual(broker.ctl("topic", "describe", "t").code, 3, "a refused topic is not half created")
        broker.create("t", "--partitions", "1")
        done = broker.ctl("topic", "alter", "t", "--config", "cleanup.policy=compact")
        self.assertEqual(done.code, 2, done.err)
        self.assertIn("INVALID_CONFIG", done.err)
        self.assertIn("does not compact by key", done.err)
        # A null value is a record like any other, and stays.
        lines = b"".join(b'{"key": "k", "value": %s}\n' % value for value in (b'"a"', b'"b"', b"null", b'"c"'))
        self.assertEqual(broker.ctl("produce", "t", "--json", stdin=lines).code, 0)
        broker.stop()
        broker.start()
        read = [json.loads(line) for line in broker.ctl("consume", "t", "-e", "-J").out.splitlines()]
        self.assertEqual([record["value"] for record in read], ["a", "b", None, "c"])

    def test_unknown_topic_names_the_nearest(self):
        broker = self.broker().start()
        broker.create("orders")
        done = broker.ctl("produce", "ordres", stdin=b"x\n")
        self.assertEqual(done.code, 3, done.err)
        self.assertIn('"orders"', done.err)
        self.assertEqual(broker.ctl("topic", "create", "t", "--config", "retention.agee=1d").code, 2)
        self.assertEqual(broker.ctl("topic", "describe", "t").code, 3, "a refused topic is not half created")


if __name__ == "__main__":
    unittest.main(verbosity=2)
