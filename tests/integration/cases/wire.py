"""A client of the protocol written from PROTOCOL.md alone: frames, a few headers, nothing else."""

import socket
import struct

HELLO, METADATA, PRODUCE, FETCH = 1, 3, 4, 5


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
