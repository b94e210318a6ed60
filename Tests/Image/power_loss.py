#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cuts the power of an emulated board again and again, at moments that a seed chooses: while it starts for the first time,
while it enrolls, while it starts again, while it shows a request, and around an approval.

usage: power_loss.py IMAGE TOKEN_SERVER DIRECTORY COUNT SEED

DIRECTORY has the SD card, the token server and the list of the losses that were. A run that was interrupted continues there
with the next one: its end was one more power loss. Exit code 1: a step failed.
"""
import json
import pathlib
import random
import subprocess
import sys
import time

from card import Card
from machine import Timeout, slowness
from scene import PIN, Scene, run

# The losses before the token may finish its enrollment.
EARLY = 5
# A run that was interrupted for longer, in seconds, does not wait for what was open: requests are valid for 15 minutes.
LONGEST_PAUSE = 600
# What a loss interrupts, after the enrollment.
KINDS = ["start", "login shown", "login approved", "payment shown", "payment approved"]
AUDIT = """[Unit]
After=approval-token.service
[Service]
Type=oneshot
User=approval-token
LoadCredentialEncrypted=approval-token.device-secret:/etc/approval-token/device-secret.cred
ExecStart=/usr/bin/approval-token log --verify --state /var/lib/approval-token
"""


class Losses:
    """The losses of one directory."""

    def __init__(self, scene, image, count, seed):
        self.scene, self.count, self.seed = scene, count, seed
        self.file = scene.directory / "losses.json"
        self.key = [image.with_name(image.name + ".sha256").read_text().split()[0], seed]
        former = json.loads(self.file.read_text()) if self.file.exists() else {}
        self.done, self.open = (former["done"], former["open"]) if former.get("key") == self.key else (0, [])
        if former and former.get("key") != self.key:
            raise RuntimeError(f"{scene.directory} belongs to another image or seed: remove it")
        if former:
            scene.take_card()
            scene.root = former["root"]
            if self.open and time.time() - self.file.stat().st_mtime > LONGEST_PAUSE:
                print("  after the interruption: what was open may have expired, and is not checked", flush=True)
                self.open = []
        else:
            scene.flash(image)
            self.save()

    def save(self):
        text = json.dumps({"key": self.key, "done": self.done, "open": self.open, "root": self.scene.root})
        draft = self.file.with_suffix(".new")
        draft.write_text(text)
        draft.rename(self.file)

    @property
    def server(self):
        return self.scene.server

    # What a user does

    def use(self, until, seconds=540):
        """Does what the LED asks for until `until` returns something true: types the PIN, holds the button."""
        machine = self.scene.machine
        since, end = machine.began, time.monotonic() + seconds * slowness()
        while not (found := until()):
            if time.monotonic() > end:
                raise Timeout(f"the token is not as it should be; the LED was {set(machine.lines.colors(since))}")
            colors = machine.lines.colors(since)
            if "amber" in colors:
                time.sleep(1)
                machine.type(PIN)
                since = time.monotonic() + 2
            elif "blue" in colors:
                time.sleep(1)
                machine.lines.press(1.3)
                since = time.monotonic() + 2
            time.sleep(0.2)
        return found

    def device(self):
        return (self.server.devices() or [{}])[0].get("id")

    def is_settled(self):
        """Whether each request from before the last loss is approved."""
        self.open = [entry for entry in self.open if not self.server.is_authenticated(entry)]
        return not self.open

    def recover(self):
        """The token is enrolled, and approves what was open and a new login."""
        began = time.monotonic()
        device = self.use(self.device)
        self.use(self.is_settled)
        request = self.use(lambda: self.server.ask("login", device))
        self.use(lambda: self.server.is_authenticated(request))
        return time.monotonic() - began

    # One loss

    def lose(self, number):
        chance = random.Random(f"{self.seed}/{number}")
        machine = self.scene.machine
        if number < EARLY:
            # The URI is taken, the PIN is typed, the account is stored: at some moment of it.
            moment = chance.uniform(1, 70)
            what = f"{moment:.1f} s after power-on, before or in the enrollment"
            end = machine.began + moment * slowness()
            try:
                self.use(lambda: time.monotonic() > end)
            except Timeout:
                pass
            return what
        kind = chance.choice(KINDS)
        if kind == "start":
            moment = chance.uniform(1, 45)
            time.sleep(moment)
            return f"{moment:.1f} s after power-on"
        self.recover()
        request = self.server.ask(kind.split()[0], self.device())
        self.open.append(request)
        self.save()
        color = "amber" if kind.startswith("payment") else "blue"
        machine.lines.shows(color, time.monotonic(), 90)
        if kind.endswith("shown"):
            moment = chance.uniform(0, 2)
            time.sleep(moment)
            if self.server.is_authenticated(request):
                raise Timeout("a request was approved that its user did not approve")
            return f"{moment:.2f} s after a {kind.split()[0]} was shown"
        time.sleep(1)
        if kind.startswith("payment"):
            machine.type(PIN)
        else:
            machine.lines.press(1.3)
        moment = chance.uniform(0, 1.5)
        time.sleep(moment)
        return f"{moment:.2f} s after a {kind.split()[0]} was approved"

    def run(self):
        while self.done < self.count:
            self.scene.power_on()
            what = self.lose(self.done)
            self.scene.machine.cut_power()
            self.done += 1
            self.save()
            print(f"  ok  power loss {self.done:2}: {what}", flush=True)
        self.scene.power_on(unit=AUDIT)
        self.recover()
        self.scene.step("after the last one: what was open, and a new login, are approved")
        self.scene.says("intact: ", 120)
        self.scene.step("the audit chain is intact")
        if len(self.server.devices()) != 1:
            raise Timeout("the token server has more than one device")
        self.scene.machine.power_off()
        self.check_card()

    def check_card(self):
        card, root = Card(self.scene.card.path), json.loads(self.file.read_text())["root"]
        if card.root_hash() != root:
            raise Timeout("the root partition has changed")
        copy = self.scene.directory / "state.img"
        card.copy(card.state, copy)
        checked = subprocess.run(["e2fsck", "-fn", copy], capture_output=True, text=True)
        copy.unlink()
        if checked.returncode:
            raise Timeout(f"the file system of the state has errors: {checked.stdout}")
        print("  ok  the root partition has not changed, the file system of the state has no errors", flush=True)


def main():
    image, program, directory = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    count, seed = int(sys.argv[4]), sys.argv[5]
    directory.mkdir(parents=True, exist_ok=True)
    scene = Scene(program, directory)
    return run(scene, lambda: Losses(scene, image, count, seed).run())


if __name__ == "__main__":
    sys.exit(main())
