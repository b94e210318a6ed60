#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the image's programs for the state of the slots and for updates from the SD card, on files of this machine.

usage: slots.py

Exit code 1: a check failed.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

from card import COPIES, COPY_SIZE, states_of
from checks import check, exit_code

PACKAGING = pathlib.Path(__file__).parents[2] / "packaging/image"
SLOTS = PACKAGING / "root/usr/libexec/approval-token/slots"
INSTALL = PACKAGING / "root/usr/libexec/approval-token/install-update"


class Disk:
    """The first part of an SD card, as the image has it."""

    def __init__(self, directory):
        self.directory, self.path = pathlib.Path(directory), pathlib.Path(directory) / "disk"
        copy = self.directory / "copy"
        subprocess.run(["mkenvimage", "-s", str(COPY_SIZE), "-p", "0", "-o", copy, PACKAGING / "boot/slots.txt"], check=True)
        self.path.write_bytes(bytes(4 << 20))
        for place in COPIES:
            self.write(place, copy.read_bytes())

    def write(self, place, data):
        with open(self.path, "r+b") as disk:
            disk.seek(place)
            disk.write(data)

    def run(self, *arguments, status=0):
        environment = os.environ | {"APPROVAL_TOKEN_DISK": str(self.path), "APPROVAL_TOKEN_RUN": str(self.directory)}
        done = subprocess.run([SLOTS, *arguments], env=environment, capture_output=True, text=True)
        if done.returncode != status:
            raise RuntimeError(f"{arguments}: exit code {done.returncode}: {done.stderr}")
        return done.stdout.strip()

    def states(self):
        data = self.path.read_bytes()
        return states_of(data[place : place + COPY_SIZE] for place in COPIES)

    def damage_newest(self):
        """As a power loss does while it is written."""
        data = self.path.read_bytes()
        place = max(COPIES, key=lambda place: int(states_of([data[place : place + COPY_SIZE]])[0]["BOOT_SEQUENCE"], 16))
        self.write(place + 20, b"x")


def check_states(disk):
    check("a new SD card starts slot A, which is good", disk.run("get-primary") == "A" and disk.run("get-state", "A") == "good")
    check("slot B is bad", disk.run("get-state", "B") == "bad")
    disk.run("set-state", "B", "bad")
    check("a change writes one of the copies", [state["BOOT_SEQUENCE"] for state in disk.states()] == ["1", "2"])
    disk.run("set-primary", "B")
    state = disk.states()[-1]
    check("an update is on trial, and first", state["BOOT_ORDER"] == "B A" and state["BOOT_B_GOOD"] == "0" and
          state["BOOT_B_LEFT"] == "3" and disk.run("get-primary") == "B")
    check("the former system stays good", state["BOOT_A_GOOD"] == "1")
    disk.run("set-state", "B", "good")
    check("what passed is good", disk.states()[-1]["BOOT_B_GOOD"] == "1" and disk.run("get-primary") == "B")
    before = disk.path.read_bytes()
    disk.run("set-primary", "B")
    check("what is first and good stays so", disk.path.read_bytes() == before)
    disk.damage_newest()
    check("after a power loss in a change, the former state counts",
          disk.states()[-1]["BOOT_B_GOOD"] == "0" and disk.run("get-primary") == "B")
    disk.run("set-state", "B", "bad")
    check("what failed is left", disk.run("get-primary") == "A" and len(disk.states()) == 2)


def check_numbers(disk):
    for _ in range(20):
        disk.run("set-state", "A", "good")
    numbers = [int(state["BOOT_SEQUENCE"], 16) for state in disk.states()]
    check("numbers are hexadecimal, as U-Boot writes them", numbers == [20, 21])
    for place in COPIES:
        disk.write(place, bytes(COPY_SIZE))
    check("without a valid copy both slots are on trial", disk.run("get-primary") == "A" and disk.run("get-state", "B") == "good")
    disk.run("set-state", "A", "good")
    check("and the next change makes one", len(disk.states()) == 1 and disk.states()[0]["BOOT_A_GOOD"] == "1")
    for arguments in (["set-state", "C", "good"], ["set-state", "A", "fine"], ["set-primary", ""], []):
        disk.run(*arguments, status=64)
    check("wrong arguments are refused", True)


def install(result, text):
    """The calls of the program's commands, the log on the SD card, and whether the bundle was removed."""
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        for name in ("boot/firmware", "run", "commands"):
            (root / name).mkdir(parents=True)
        bundle = root / "boot/firmware/approval-token.raucb"
        bundle.write_text("a bundle")
        for command, end in (("mount", ""), ("systemctl", ""), ("rauc", f"printf '{text}'\nexit {result}\n")):
            (root / "commands" / command).write_text(
                f'#!/bin/sh\necho {command} "$@" $(ls {bundle} 2>/dev/null) >>{root}/calls\n{end}')
            (root / "commands" / command).chmod(0o755)
        environment = {"PATH": f"{root}/commands:{os.environ['PATH']}", "APPROVAL_TOKEN_ROOT": str(root)}
        subprocess.run([INSTALL], env=environment, stdout=subprocess.DEVNULL, check=True)
        return (root / "calls").read_text(), (root / "boot/firmware/approval-token.log").read_text(), not bundle.exists()


def check_installation():
    calls, log, is_removed = install(0, "100%% Installing done.\\n")
    check("an update on the SD card is installed, and the board restarts", "rauc install" in calls and
          "systemctl --no-block reboot" in calls and log.rstrip().endswith("  update: installed, restarting"))
    check("it is removed before the restart", is_removed and "reboot /" not in calls)
    calls, log, is_removed = install(1, "LastError: signature verification failed: x\\nInstalling failed\\n")
    check("one that is refused is removed, and the log has the reason", is_removed and "reboot" not in calls and
          log.rstrip().endswith("  update: not installed: signature verification failed: x"))
    calls, log, is_removed = install(1, "Error creating proxy: time-out\\n")
    check("if RAUC does not answer, it stays for the next start, and the log has the reason", not is_removed and
          "reboot" not in calls and log.rstrip().endswith("  update: not installed: Error creating proxy: time-out"))


if __name__ == "__main__":
    print("the state of the slots, and updates")
    for part in (check_states, check_numbers):
        with tempfile.TemporaryDirectory() as directory:
            part(Disk(directory))
    check_installation()
    sys.exit(exit_code())
