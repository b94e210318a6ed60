# SPDX-License-Identifier: Apache-2.0
"""A token server, a card and the board that it is in, and what a user and a portal do with them."""
import base64
import pathlib
import shutil
import signal
import subprocess
import sys
import time

from card import Card
from machine import Machine, Timeout, wait
from server import Server

PIN = "13589"
# systemd's limits are those of a machine that the board has for itself.
OPTIONS = ("console=ttyAMA0 loglevel=4 systemd.journald.forward_to_console=1 "
           "systemd.default_timeout_start_sec=600 systemd.default_device_timeout_sec=600")
# chrony reaches no time server, wherever the test runs.
NO_TIME = "[Service]\nIPAddressDeny=any\n"
# librnp writes it about a signature of a clock that is ahead, and the service drops it.
MESSAGE_OF_LIBRNP = "seconds in future"
LOG = pathlib.Path(__file__).parents[2] / ".build/logs/test-image-console.log"


def credential(name, text):
    """A kernel option that gives systemd a unit, or a part of one."""
    return f"systemd.set_credential_binary=systemd.{name}.service:{base64.b64encode(text.encode()).decode()}"


class Scene:
    def __init__(self, program, directory):
        self.directory, self.machine, self.former_consoles = directory, None, ""
        self.loader = directory / "u-boot.bin"
        self.server = Server(program, directory)

    # The SD card

    def flash(self, image):
        """Writes the image to a card, and puts the files of a user there."""
        self.card = Card.flashed(image, self.directory / "card.img")
        shutil.copy(image.with_name(image.stem + ".u-boot.bin"), self.loader)
        self.root = self.card.root_hash()
        self.uri = self.server.activation()
        self.card.put("approval-token.toml", 'board = "qemu-virt"\nhost = "token-of-alice"\n')
        self.card.put("approval-token.uri", self.uri + "\n")

    def take_card(self):
        """Takes the SD card of an earlier scene in the same directory."""
        self.card = Card(self.directory / "card.img")

    # The board

    def power_on(self, unit=None, options="", has_watchdog=False, clock=None):
        """`unit` is the text of a systemd unit that runs in this boot; it is not on the SD card. With `clock`, the UTC time
        of the board at power-on, no time server corrects it."""
        if unit:
            options += f" {credential('extra-unit.test', unit)} systemd.wants=test.service"
        if clock:
            options += f" {credential('unit-dropin.chrony', NO_TIME)}"
        self.card.put("kernel-options.txt", f"extra={OPTIONS} {options}".strip() + "\n")
        if self.machine:
            self.former_consoles += self.machine.text()
        self.machine = Machine(self.directory, self.card.path, self.loader, has_watchdog, clock)

    def says(self, text, seconds, since=0):
        """Waits for a text on the console after its first `since` characters."""
        wait(seconds, f'the console should say "{text}"', lambda: text in self.machine.text()[since:])

    def step(self, text):
        print(f"  ok  {self.machine.seconds():5.0f} s  {text}", flush=True)

    # The user and the portal

    def enroll(self, since=None, why="the board and the URI came from the SD card"):
        self.machine.lines.shows("amber", since or self.machine.began, 540)
        self.step(f"the LED asks for a new PIN: {why}")
        time.sleep(1)
        self.machine.type(PIN)
        time.sleep(3)
        self.machine.type(PIN)
        wait(120, "the portal should see the token", self.server.devices)
        self.step("enrolled, with a PIN typed on the USB keyboard")

    def ask(self, kind):
        device = wait(60, "the portal should see the token", self.server.devices)[0]["id"]
        return wait(60, "the portal should find the device", lambda: self.server.ask(kind, device))

    def login(self, seconds=90):
        since = time.monotonic()
        transaction = self.ask("login")
        self.machine.lines.shows("blue", since, seconds)
        # A press within half a second is ignored.
        time.sleep(1)
        if self.server.is_authenticated(transaction):
            raise Timeout("the login counts as approved before the button was pressed")
        self.machine.lines.press(1.3)
        wait(60, "the portal should read that alice is authenticated", lambda: self.server.is_authenticated(transaction))

    def payment(self, seconds=90):
        since = time.monotonic()
        transaction = self.ask("payment")
        self.machine.lines.shows("amber", since, seconds)
        time.sleep(1)
        self.machine.type(PIN)
        wait(60, "the portal should read that alice is authenticated", lambda: self.server.is_authenticated(transaction))

    def half_typed_payment(self, seconds=90):
        """A payment of which two digits of the PIN are typed."""
        since = time.monotonic()
        transaction = self.ask("payment")
        self.machine.lines.shows("amber", since, seconds)
        time.sleep(1)
        for digit in PIN[:2]:
            self.machine.qmp.key(f"kp_{digit}")
        return transaction

    def stop_waits(self, seconds, since):
        """Until the service says that it stops when such a payment is answered, on the console after its first `since`
        characters."""

        def condition():
            # An entry without a key is erased after a time.
            self.machine.qmp.key("kp_9")
            self.machine.qmp.key("backspace")
            return "the service stops when the answer" in self.machine.text()[since:]

        wait(seconds, "the service should wait for the answer", condition)

    def type_rest(self, transaction):
        """Only one answer counts."""
        self.machine.type(PIN[2:])
        wait(60, "the portal should read that alice is authenticated", lambda: self.server.is_authenticated(transaction))
        if self.server.answers(transaction) != 1:
            raise Timeout(f"the token server took {self.server.answers(transaction)} answers")

    def check_consoles(self):
        """Those of all boots have the journal, with what the service has written."""
        if MESSAGE_OF_LIBRNP in self.former_consoles + self.machine.text():
            raise Timeout(f'a console has a message of librnp: "{MESSAGE_OF_LIBRNP}"')
        print("  ok           no console has a message of librnp about a signature in the future", flush=True)

    def end(self):
        if self.machine and self.machine.process.poll() is None:
            self.machine.cut_power()
        self.server.end()


def run(scene, body):
    """Runs `body`; on a failure prints it and the console. Returns the exit code."""
    # So that an interrupted script ends QEMU and the token server.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        body()
        scene.check_consoles()
        return 0
    except (Timeout, RuntimeError, subprocess.SubprocessError, OSError) as failure:
        print(f"  FAILED: {failure}", flush=True)
        if scene.machine:
            LOG.parent.mkdir(parents=True, exist_ok=True)
            LOG.write_text(scene.machine.text())
            print(f"the last lines of the board's console, which is in {LOG}:")
            print("\n".join(scene.machine.text().splitlines()[-25:]))
        return 1
    finally:
        scene.end()
