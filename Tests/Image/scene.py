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
LOG = pathlib.Path(__file__).parents[2] / ".build/logs/test-image-console.log"


class Scene:
    def __init__(self, program, directory):
        self.directory, self.machine = directory, None
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

    def power_on(self, unit=None, options="", has_watchdog=False):
        """`unit` is the text of a systemd unit that runs in this boot; it is not on the SD card."""
        if unit:
            text = base64.b64encode(unit.encode()).decode()
            options = f"systemd.set_credential_binary=systemd.extra-unit.test.service:{text} systemd.wants=test.service"
        self.card.put("kernel-options.txt", f"extra={OPTIONS} {options}".strip() + "\n")
        self.machine = Machine(self.directory, self.card.path, self.loader, has_watchdog)

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
