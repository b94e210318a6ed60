# SPDX-License-Identifier: Apache-2.0
"""A shell as root in the guest, for tests that act or look there. It is not on the SD card: it comes with the kernel's
command line, and speaks over a serial line of the emulated machine."""
import threading

from machine import Timeout, connected, slowness

PORT = "/dev/virtio-ports/test"
# `$$` is systemd's `$`.
UNIT = f"""[Service]
ExecStart=/bin/sh -c "until [ -e {PORT} ]; do sleep 1; done; exec 3<>{PORT} <&3 >&3 2>&3; echo '= up'; \
while read -r line; do sh -c \\"$$line\\" </dev/null; echo \\"= $$?\\"; done"
"""


class Shell:
    def __init__(self, machine):
        self.socket = connected(machine.directory / "shell.sock")
        self.socket.settimeout(1)
        self.rest, self.lock = b"", threading.Lock()
        self.result(600)

    def result(self, seconds):
        """The lines up to the next one that ends a command, and the exit code."""
        lines, waited = [], 0
        while waited < seconds * slowness():
            line, separator, rest = self.rest.partition(b"\n")
            if separator:
                self.rest = rest
                text = line.decode(errors="replace").rstrip("\r")
                if text.startswith("= "):
                    return "\n".join(lines), text[2:]
                lines.append(text)
                continue
            try:
                received = self.socket.recv(65536)
            except TimeoutError:
                waited += 1
                continue
            if not received:
                raise RuntimeError("the emulated board has ended")
            self.rest += received
        raise Timeout("the shell in the guest does not answer")

    def run(self, command, seconds=120):
        """Runs one line of the shell; returns its output. A failure is an error."""
        with self.lock:
            self.socket.sendall(command.encode() + b"\n")
            output, code = self.result(seconds)
        if code != "0":
            raise RuntimeError(f"{command}: exit code {code}: {output}")
        return output
