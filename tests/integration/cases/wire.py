"""A client of the protocol written from PROTOCOL.md alone: frames, a few headers, nothing else."""

import socket
import struct

HELLO, METADATA, PRODUCE, FETCH, INIT_PRODUCER = 1, 3, 4, 5, 13


def _table():
    table = []
    for n in range(256):
        for _ in range(8):
            n = (n >> 1) ^ (0x82F63B78 if n & 1 else 0)
        table.append(n)
    return table


_CRC = _table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _CRC[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def field_varint(number, value):
    return varint(number << 3) + varint(value)


def field_bytes(number, value):
    return varint(number << 3 | 2) + varint(len(value)) + value


def field_fixed64(number, value):
    return varint(number << 3 | 1) + struct.pack("<Q", value)


def parse(header):
    """{field: [values]}; nested messages stay bytes."""
    fields, at = {}, 0

    def take_varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = header[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(header):
        key = take_varint()
        if key & 7 == 0:
            value = take_varint()
        elif key & 7 == 1:
            value = header[at:at + 8]
            at += 8
        elif key & 7 == 2:
            length = take_varint()
            value = header[at:at + length]
            at += length
        else:
            raise ValueError(f"wire type {key & 7}")
        fields.setdefault(key >> 3, []).append(value)
    return fields


def frame(api, header=b"", payload=b"", version=0, flags=0, correlation=1, crc=None, frame_bytes=None, header_bytes=None):
    head = struct.pack("<IHBBII", 16 + len(header) + len(payload) if frame_bytes is None else frame_bytes, api, version,
                       flags, correlation, len(header) if header_bytes is None else header_bytes)
    return head + struct.pack("<I", crc32c(head + header) if crc is None else crc) + header + payload


def hello(instance=7, number=1):
    return frame(HELLO, field_bytes(16, b"case") + field_fixed64(17, instance) + field_varint(18, number))


class Wire:
    """One connection. Reads time out after `seconds`."""

    def __init__(self, broker, preface=b"MQP1", seconds=5):
        self.socket = socket.create_connection((broker.host.strip("[]"), broker.port), timeout=seconds)
        self.socket.settimeout(seconds)
        if preface:
            self.socket.sendall(preface)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def exactly(self, count):
        data = b""
        while len(data) < count:
            piece = self.socket.recv(count - len(data))
            if not piece:
                raise ConnectionError("closed")
            data += piece
        return data

    def answer(self):
        """(api, version, flags, correlation, header fields, payload) of the next frame."""
        size, api, version, flags, correlation, header_bytes, _ = struct.unpack("<IHBBIII", self.exactly(20))
        body = self.exactly(size - 16)
        return api, version, flags, correlation, parse(body[:header_bytes]), body[header_bytes:]

    def status(self):
        """Error number of the next answer; 0 is OK."""
        return status_code(self.answer()[4])

    def closed(self):
        """True if the peer closes without (more) answers, False if it keeps silent."""
        try:
            while True:
                if not self.socket.recv(65536):
                    return True
        except (ConnectionResetError, BrokenPipeError):
            return True
        except socket.timeout:
            return False

    def everything(self):
        """All bytes until the peer closes; what came so far if it does not."""
        data = b""
        try:
            while piece := self.socket.recv(65536):
                data += piece
        except OSError:
            pass
        return data


def status_code(fields):
    if 1 not in fields:
        return 0
    return parse(fields[1][0]).get(1, [0])[0]


def open_session(broker, **options):
    wire = Wire(broker, **options)
    wire.send(hello())
    code = wire.status()
    assert code == 0, f"Hello was answered with error {code}"
    return wire


def zigzag(value):
    return value << 1 if value >= 0 else (-value << 1) - 1


def unzigzag(value):
    return value >> 1 ^ -(value & 1)


def named_batch(producer, epoch, sequence, records, value=b"v"):
    """A batch as a client sends it, with `records` records of one value each."""
    body_records = b""
    for i in range(records):
        record = (b"\0" + varint(0) + varint(i) + varint(0) + varint(len(value) + 1) + value + varint(0) + varint(0))
        body_records += varint(len(record)) + record
    now = 1_700_000_000_000
    body = struct.pack("<BBBBHHIIqqqiiQII", 1, 12, 0, 0, 0, 0, records, records - 1, now, now, producer, epoch, sequence, 0,
                       len(body_records), 0) + body_records
    head = struct.pack("<qIiqI", -1, 32 + len(body), -1, -1, crc32c(body))
    return head + struct.pack("<I", crc32c(head)) + body


def partition_field(number, topic, partition):
    return field_bytes(number, field_bytes(1, topic) + field_varint(2, partition))


def produce_frame(topic, partition, sequence, batch):
    entry = partition_field(1, topic, partition) + field_varint(2, len(batch)) + field_varint(3, sequence)
    return frame(PRODUCE, field_varint(1, 10_000) + field_varint(16, 2) + field_bytes(17, entry), batch)


class Produced:
    """One result of a Produce answer."""

    def __init__(self, fields):
        result = parse(fields[16][0])
        status = parse(result[2][0]) if 2 in result else {}
        self.code = status.get(1, [0])[0]
        self.flags = status.get(2, [0])[0]
        self.text = status.get(3, [b""])[0].decode()
        self.offset = unzigzag(result[3][0]) if 3 in result else 0
        self.append_time_ms = unzigzag(result[4][0]) if 4 in result else 0


def produce(session, topic, partition, sequence, batch):
    session.send(produce_frame(topic, partition, sequence, batch))
    fields = session.answer()[4]
    assert status_code(fields) == 0, fields
    return Produced(fields)


def init_producer(session):
    """(error, producer id, epoch)"""
    session.send(frame(INIT_PRODUCER, field_varint(1, 10_000)))
    fields = session.answer()[4]
    return status_code(fields), unzigzag(fields.get(16, [0])[0]), unzigzag(fields.get(17, [0])[0])
