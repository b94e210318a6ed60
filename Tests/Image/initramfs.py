#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the image's script of the initramfs on a file system in a file: intact, damaged, and one that is none.

usage: initramfs.py

Exit code 1: a check failed.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

from checks import check, exit_code

SCRIPT = pathlib.Path(__file__).parents[2] / "packaging/image/root/etc/initramfs-tools/scripts/init-bottom/approval-token-root"
SBIN = os.environ["PATH"] + ":/usr/sbin:/sbin"
FUNCTIONS = """
panic() { exit 99; }
log_warning_msg() { :; }
log_failure_msg() { :; }
resolve_device() { printf '%s' "$STATE_FILE"; }
"""


def file_system(path):
    """One with files in the directory `etc`."""
    with tempfile.TemporaryDirectory() as directory:
        (pathlib.Path(directory) / "etc").mkdir()
        for number in range(3):
            (pathlib.Path(directory) / "etc" / f"file{number}").write_text("x" * 5000)
        subprocess.run(["mke2fs", "-t", "ext4", "-d", directory, path, "4M"], check=True,
                       capture_output=True, env={"PATH": SBIN})


def is_intact(path):
    """As e2fsck sees it, without a change."""
    return subprocess.run(["e2fsck", "-f", "-n", path], env={"PATH": SBIN}, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode == 0


class Start:
    """The script's exit code, the partitions that it wanted to mount, and what it noted for the log on the SD card."""

    def __init__(self, state, mount=0, options="quiet", is_reset=False):
        with tempfile.TemporaryDirectory() as directory:
            root = pathlib.Path(directory)
            for name in ("commands", "run", "root/state", "root/etc"):
                (root / name).mkdir(parents=True)
            (root / "root/state/hostname").write_text("frontdoor\n")
            if is_reset:
                (root / "root/state/var/lib/approval-token").mkdir(parents=True)
                (root / "root/state/var/lib/approval-token/factory-reset").touch()
            (root / "functions").write_text(FUNCTIONS)
            (root / "cmdline").write_text(f"root=PARTUUID=61746b6e-02 {options} ro\n")
            text = SCRIPT.read_text()
            for place in ("/scripts/functions", "/proc/cmdline", "/run/", "/layers"):
                if place not in text:
                    raise RuntimeError(f"the script does not have {place}")
                name = place.removeprefix("/scripts/").removeprefix("/proc/").strip("/")
                text = text.replace(place, f"{root}/{name}" + "/" * place.endswith("/"))
            (root / "script").write_text(text)
            for command, end in (("modprobe", ""), ("chroot", f'shift; echo "$@" >>{root}/chroots'), ("sync", ""),
                                 ("mount", f'echo "$@" >>{root}/calls\ncase "$2" in ext4) exit {mount} ;; esac')):
                (root / "commands" / command).write_text(f"#!/bin/sh\n{end}\n")
                (root / "commands" / command).chmod(0o755)
            environment = {"PATH": f"{root}/commands:{SBIN}", "rootmnt": f"{root}/root", "STATE_FILE": str(state)}
            self.status = subprocess.run(
                ["/bin/sh", root / "script"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
            notes, calls = root / "run/approval-token-start.log", root / "calls"
            self.notes = notes.read_text() if notes.exists() else ""
            self.mounts, self.chroots = calls.read_text(), (root / "chroots").read_text() if (root / "chroots").exists() else ""
            self.has_trial_file = (root / "run/approval-token-trial").exists()
            self.has_machine_id = (root / "root/state/machine-id").exists()
            name = root / "root/etc/hostname"
            self.host = name.read_text() if name.exists() else ""


def main():
    print("the start of the system")
    with tempfile.TemporaryDirectory() as directory:
        state = pathlib.Path(directory) / "state"
        file_system(state)
        start = Start(state)
        check("the partition of the state is mounted, and its directories", start.status == 0 and start.has_machine_id and
              all(f"/{name}\n" in start.mounts for name in ("state", "etc/approval-token", "var/lib/systemd")))
        check("the users have their files, whatever numbers a former system gave them",
              "/bin/chown --recursive --no-dereference approval-token: /var/lib/approval-token\n" in start.chroots and
              "/bin/chown --recursive --no-dereference _chrony: /var/lib/chrony\n" in start.chroots)
        check("nothing is noted", start.notes == "")
        check("the board has its host name, but not after a factory reset", start.host == "frontdoor\n" and
              Start(state, is_reset=True).host == "")
        check("only a system on trial after an update has its file", not start.has_trial_file and
              Start(state, options="approval_token.trial=1 quiet").has_trial_file and
              not Start(state, options="approval_token.trial=10 quiet").has_trial_file)
        # A directory that is lost: what was in it has no name any more.
        subprocess.run(["debugfs", "-w", "-R", "clri etc", state], check=True, capture_output=True, env={"PATH": SBIN})
        preened = pathlib.Path(directory) / "preened"
        preened.write_bytes(state.read_bytes())
        ended = subprocess.run(["e2fsck", "-p", "-f", preened], env={"PATH": SBIN}, capture_output=True).returncode
        check("a damage that is not repaired without a question", ended == 4 and not is_intact(state))
        # As the kernel marks it when it finds an error.
        subprocess.run(["debugfs", "-w", "-R", "set_super_value state 2", state], check=True, capture_output=True,
                       env={"PATH": SBIN})
        start = Start(state)
        check("it is repaired at the start, and the state is mounted", is_intact(state) and start.has_machine_id)
        check("and noted", start.notes == "the file system of the state was damaged: e2fsck ended with 4, then with 1\n")
        state.write_bytes(bytes(1 << 20))
        start = Start(state, mount=32)
        check("without a file system the start goes on without the state", start.status == 0 and not start.has_machine_id and
              start.notes.endswith("\nthe partition of the state cannot be mounted\n"))
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
