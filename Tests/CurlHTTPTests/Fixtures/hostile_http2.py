# SPDX-License-Identifier: Apache-2.0
"""An HTTP/2 server (RFC 9113) that follows the protocol or violates it, selected by the body of a request.

It does not decode the head of a request, so it needs no library: the body says what to do.
"""

import struct
import threading

DATA, HEADERS, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, CONTINUATION = 0, 1, 3, 4, 5, 6, 7, 9
END_STREAM, ACK, END_HEADERS = 1, 1, 4
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
FOREVER = range(1 << 62)


def field(name, value):
    """A field line without indexing and without Huffman coding (RFC 7541 section 6.2.2)."""
    name, value = name.encode(), str(value).encode()
    assert len(name) < 127 and len(value) < 127
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


class HTTP2Connection:
    def __init__(self, stream, server):
        self.stream = stream
        self.server = server
        self.reader = stream.makefile("rb")
        self.lock = threading.Lock()
        self.bodies = {}
        self.meeting = []

    def serve(self):
        if self.reader.read(len(PREFACE)) != PREFACE:
            return
        self.send(SETTINGS, 0, 0)
        while len(head := self.reader.read(9)) == 9:
            length, kind, flags, stream = int.from_bytes(head[:3], "big"), head[3], head[4], int.from_bytes(head[5:], "big")
            payload = self.reader.read(length)
            if kind in (SETTINGS, PING) and not flags & ACK:
                self.send(kind, ACK, 0, b"" if kind == SETTINGS else payload)
            if kind in (HEADERS, DATA):
                self.bodies[stream] = self.bodies.get(stream, b"") + (payload if kind == DATA else b"")
                if flags & END_STREAM:
                    self.act(stream, self.bodies.pop(stream).decode())

    def act(self, stream, text):
        if text.startswith("status "):
            return self.head(stream, END_STREAM, status=text[7:])
        getattr(self, "do_" + text.replace("-", "_"))(stream)

    def send(self, kind, flags, stream, payload=b""):
        head = len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big")
        with self.lock:
            self.stream.sendall(head + payload)

    def head(self, stream, flags=0, status=200, **fields):
        block = field(":status", status) + b"".join(field(n.replace("_", "-"), v) for n, v in fields.items())
        self.send(HEADERS, END_HEADERS | flags, stream, block)

    def answer(self, stream, text, **fields):
        self.head(stream, **fields)
        self.send(DATA, END_STREAM, stream, text)

    def begin(self, stream):
        self.head(stream, content_length=1000)
        self.send(DATA, 0, stream, b"the beginning")

    # Valid responses.

    def do_connections(self, stream):
        text = str(self.server.values["connections"]).encode()
        self.answer(stream, text, content_length=len(text))

    def do_no_length(self, stream):
        self.answer(stream, b"ends with a flag")

    def do_interim(self, stream):
        self.head(stream, status=103, x_interim="yes")
        self.answer(stream, b"after a hint", content_length=12)

    def do_trailers(self, stream):
        self.head(stream)
        self.send(DATA, 0, stream, b"ok")
        self.send(HEADERS, END_HEADERS | END_STREAM, stream, field("x-trailer", "late"))

    def do_meet(self, stream):
        """Answered when two of these requests have arrived on the same connection."""
        self.meeting.append(stream)
        if len(self.meeting) == 2:
            for one in self.meeting:
                self.answer(one, b"met")

    def do_go_away(self, stream):
        """A server that shuts down in order: this response still comes, no other on this connection."""
        self.send(GOAWAY, 0, 0, struct.pack("!II", stream, 0))
        self.answer(stream, b"the last one")

    def do_redirect(self, stream):
        self.head(stream, END_STREAM, status=302, location="https://elsewhere.example/")

    # Too long.

    def do_big(self, stream):
        self.head(stream)
        for _ in range(256):
            self.send(DATA, 0, stream, bytes(16384))

    def do_endless_head(self, stream):
        self.send(HEADERS, 0, stream, field(":status", 200))
        for _ in FOREVER:
            self.send(CONTINUATION, 0, stream, field("x-more", "and more") * 500)

    def do_endless_interim(self, stream):
        for _ in FOREVER:
            self.head(stream, status=103, x_interim="yes")

    def do_endless_trailers(self, stream):
        self.head(stream)
        self.send(DATA, 0, stream, b"ok")
        self.send(HEADERS, END_STREAM, stream, field("x-more", "and more"))
        for _ in FOREVER:
            self.send(CONTINUATION, 0, stream, field("x-more", "and more") * 500)

    # Incomplete.

    def do_never(self, stream):
        pass

    def do_half_body(self, stream):
        self.begin(stream)

    def do_reset(self, stream):
        self.begin(stream)
        self.send(RST_STREAM, 0, stream, struct.pack("!I", 2))

    def do_short(self, stream):
        self.begin(stream)
        self.send(DATA, END_STREAM, stream)

    def do_close(self, stream):
        self.begin(stream)
        raise OSError("hang up")

    def do_close_without_length(self, stream):
        self.head(stream)
        self.send(DATA, 0, stream, b"the beginning")
        raise OSError("hang up")

    def do_abandon(self, stream):
        """Says that nothing of the request was processed, and ends the connection."""
        self.send(GOAWAY, 0, 0, struct.pack("!II", 0, 0))
        raise OSError("hang up")

    # Invalid.

    def do_garbage(self, stream):
        self.stream.sendall(bytes(range(256)) * 256)

    def do_bad_status(self, stream):
        self.head(stream, END_STREAM, status="huh")

    def do_upper_case(self, stream):
        self.head(stream, END_STREAM, X_Upper="case")

    def do_push(self, stream):
        self.send(PUSH_PROMISE, END_HEADERS, stream, struct.pack("!I", 2) + field(":status", 200))

    def do_pings(self, stream):
        for _ in FOREVER:
            self.send(PING, 0, 0, bytes(8))

    def do_settings(self, stream):
        for _ in FOREVER:
            self.send(SETTINGS, 0, 0)

    def do_empty_data(self, stream):
        self.head(stream)
        for _ in FOREVER:
            self.send(DATA, 0, stream)
