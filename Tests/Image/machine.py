# SPDX-License-Identifier: Apache-2.0
"""A board that QEMU emulates: the machine `virt` for arm64 with a card, a USB keyboard, and a PL061 whose lines this program
reads and drives from outside of the guest."""
import json
import os
import pathlib
import queue
import re
import signal
import socket
import struct
import subprocess
import threading
import time
import zlib

# The lines of boards/qemu-virt.
BUTTON, RED, GREEN, BLUE = 0, 4, 5, 6
# A state of the LED counts if it lasts this long: its lines are switched one after the other.
SHORTEST = 0.04
COLORS = {
    "dark": (False, False, False),
    "red": (True, False, False),
    "green": (False, True, False),
    "blue": (False, False, True),
    # Also magenta: its lines are on or off.
    "violet": (True, False, True),
    "amber": (True, True, False),
    "white": (True, True, True),
}


# A wait is never longer than this many times its limit.
MOST_SLOWNESS = 5


# The environment of U-Boot, in the board's flash memory: as packaging/image/boot/uboot.txt, with the addresses of this
# board. Its memory begins at 1 GiB.
FLASH_SIZE, ENVIRONMENT_SIZE = 64 << 20, 0x40000
ENVIRONMENT = [
    "bootcmd=virtio scan; if load virtio 0:1 ${scriptaddr} boot.scr; then source ${scriptaddr}; fi; reset",
    "bootdelay=-2", "devtype=virtio", "devnum=0", "loadaddr=0x40200000", "scriptaddr=0x40200000", "fdt_addr=0x40000000",
    "fdt_high=0xffffffff", "initrd_high=0xffffffff", "stdin=serial", "stdout=serial", "stderr=serial"]


def write_flash(path):
    data = "\0".join(ENVIRONMENT).encode().ljust(ENVIRONMENT_SIZE - 4, b"\0")
    with open(path, "wb") as flash:
        flash.write(struct.pack("<I", zlib.crc32(data)) + data)
        flash.truncate(FLASH_SIZE)


class Timeout(Exception):
    pass


def slowness():
    """By how much this machine has more to do than it can: the board gets that much less of it."""
    return min(max(os.getloadavg()[0] / os.cpu_count(), 1), MOST_SLOWNESS)


def wait(seconds, what, condition):
    """Until `condition` returns something true, which is the result. `seconds` are those of an idle machine."""
    began = time.monotonic()
    while time.monotonic() < began + seconds * slowness():
        found = condition()
        if found:
            return found
        time.sleep(0.1)
    raise Timeout(f"timed out after {time.monotonic() - began:.0f} s: {what}")


def connected(path):
    """A socket that is connected to `path`."""

    def attempt():
        end = socket.socket(socket.AF_UNIX)
        try:
            end.connect(str(path))
            return end
        except OSError:
            end.close()
            return None

    return wait(30, f"{path.name} should accept connections", attempt)


class QMP:
    """Commands to QEMU: keys, power, the machine's devices."""

    def __init__(self, path):
        self.stream = connected(path).makefile("rw")
        self.stream.readline()
        self.do("qmp_capabilities")

    def do(self, command, **arguments):
        self.stream.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self.stream.flush()
        while True:
            answer = json.loads(self.stream.readline())
            if "error" in answer:
                raise RuntimeError(f"{command}: {answer['error']['desc']}")
            if "return" in answer:
                return answer["return"]

    def key(self, name):
        self.do("send-key", keys=[{"type": "qcode", "data": name}], **{"hold-time": 60})
        time.sleep(0.3)

    def chip(self):
        """The path of the GPIO chip among the devices."""
        place = "/machine/unattached"
        for child in self.do("qom-list", path=place):
            if child["type"] == "child<pl061>":
                return f"{place}/{child['name']}"
        raise RuntimeError("the machine has no PL061")


class Lines:
    """The lines of the chip, through QEMU's qtest socket."""

    def __init__(self, path, chip):
        self.socket = connected(path)
        self.chip, self.answers, self.lock = chip, queue.Queue(), threading.Lock()
        self.levels = {RED: False, GREEN: False, BLUE: False}
        # (time, color): the states of the LED.
        self.states = [(time.monotonic(), "dark")]
        threading.Thread(target=self.read, daemon=True).start()
        self.do(f"irq_intercept_out {chip}")

    def read(self):
        for line in self.socket.makefile():
            words = line.split()
            if words[:1] != ["IRQ"]:
                self.answers.put(line)
                continue
            if int(words[2]) not in self.levels:
                continue
            with self.lock:
                self.levels[int(words[2])] = words[1] == "raise"
                state = (self.levels[RED], self.levels[GREEN], self.levels[BLUE])
                color = next((name for name, value in COLORS.items() if value == state), str(state))
                self.states.append((time.monotonic(), color))

    def do(self, command):
        self.socket.sendall(command.encode() + b"\n")
        answer = self.answers.get(timeout=30)
        if not answer.startswith("OK"):
            raise RuntimeError(f"{command}: {answer}")

    def set(self, line, level):
        self.do(f"set_irq_in {self.chip} unnamed-gpio-in {line} {int(level)}")

    def press(self, seconds):
        self.set(BUTTON, 0)
        time.sleep(seconds)
        self.set(BUTTON, 1)

    def colors(self, since, lasting=SHORTEST):
        """The colors that the LED showed since this moment, each for some seconds without a break."""
        with self.lock:
            states = list(self.states)
        ends = [moment for moment, _ in states[1:]] + [time.monotonic()]
        return [color for (start, color), end in zip(states, ends) if end > since and end - max(start, since) >= lasting]

    def shows(self, color, since, seconds=60, lasting=SHORTEST):
        wait(seconds, f"the LED should be {color}", lambda: color in self.colors(since, lasting))

    def stays(self, color, since, seconds):
        """Waits for a color twice for a second, with at most instants between. In a slow guest, a blip can be that long."""

        def condition():
            colors = self.colors(since, lasting=1)
            return (color, color) in zip(colors, colors[1:])

        wait(seconds, f"the LED should stay {color}", condition)

    def blinks(self, color, since):
        """How often the LED blinks in this color, between longer pauses."""
        with self.lock:
            states = [state for state in self.states if state[0] > since]
        groups = [0]
        for (start, name), (end, _) in zip(states, states[1:]):
            if name == color and end - start >= SHORTEST:
                groups[-1] += 1
            elif name == "dark" and end - start > 0.6:
                groups.append(0)
        return groups

    def keeps_blinking(self, color, times, since, seconds):
        """Waits until two groups in sequence have this number of blinks; in a slow guest, one group can look like two."""

        def condition():
            groups = self.blinks(color, since)
            return (times, times) in zip(groups, groups[1:])

        wait(seconds, f"the LED should blink {times} times in {color}", condition)


class Machine:
    def __init__(self, directory, card, loader, has_watchdog=False, clock=None):
        """`loader` is U-Boot, which takes everything else from the SD card. A slow guest may be too late for a watchdog.
        `clock` is the UTC time of the board's clock at power-on; without it, that of this machine."""
        self.directory = pathlib.Path(directory)
        self.console = self.directory / "console.log"
        for name in ("qmp.sock", "qtest.sock", "shell.sock"):
            (self.directory / name).unlink(missing_ok=True)
        command = ["qemu-system-aarch64", "-M", "virt,acpi=off", "-cpu", "cortex-a53", "-smp", "2", "-m", "1024"]
        command += ["-display", "none", "-monitor", "none", "-no-reboot", "-serial", f"file:{self.console}"]
        flash = self.directory / "flash.img"
        write_flash(flash)
        command += ["-bios", str(loader), "-drive", f"if=pflash,unit=1,format=raw,readonly=on,file={flash}"]
        command += ["-drive", f"if=none,id=card,file={card},format=raw", "-device", "virtio-blk-pci,drive=card"]
        command += ["-netdev", "user,id=net", "-device", "virtio-net-pci,netdev=net,romfile=", "-device", "virtio-rng-pci"]
        command += ["-device", "qemu-xhci", "-device", "usb-kbd,id=keypad"]
        # The shell of a test (shell.py), if the guest has one in this boot.
        command += ["-device", "virtio-serial-pci", "-device", "virtserialport,chardev=test,name=test"]
        command += ["-chardev", f"socket,id=test,path={self.directory}/shell.sock,server=on,wait=off"]
        command += ["-qmp", f"unix:{self.directory}/qmp.sock,server=on,wait=off"]
        command += ["-qtest", f"unix:{self.directory}/qtest.sock,server=on,wait=off", "-qtest-log", "none"]
        if has_watchdog:
            command += ["-device", "i6300esb"]
        if clock:
            command += ["-rtc", f"base={clock:%Y-%m-%dT%H:%M:%S}"]
        # Stopped until the button's line has its level: like a pull-up, it is there before power is.
        command += ["-S"]
        self.began = time.monotonic()
        self.log = open(self.directory / "qemu.log", "ab")
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        self.qmp = QMP(self.directory / "qmp.sock")
        self.lines = Lines(self.directory / "qtest.sock", self.qmp.chip())
        self.lines.set(BUTTON, 1)
        self.qmp.do("cont")

    def text(self):
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.console.read_text(errors="replace"))

    def seconds(self):
        return time.monotonic() - self.began

    def type(self, digits):
        for digit in digits:
            self.qmp.key(f"kp_{digit}")
        self.qmp.key("kp_enter")

    def unplug(self):
        self.qmp.do("device_del", id="keypad")

    def plug(self):
        self.qmp.do("device_add", driver="usb-kbd", id="keypad")

    def forward(self, port):
        """A port of this machine that leads to one of the board."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            own = free.getsockname()[1]
        self.qmp.do("human-monitor-command", **{"command-line": f"hostfwd_add net tcp:127.0.0.1:{own}-:{port}"})
        return own

    def power_off(self):
        """The machine's power button: the guest shuts down."""
        self.qmp.do("system_powerdown")
        self.ends(180)

    def ends(self, seconds):
        """Waits until the guest shuts down or restarts: QEMU ends then."""
        self.process.wait(timeout=seconds * slowness())

    def cut_power(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(timeout=30)
