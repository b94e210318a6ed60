#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the image's program that reports the self-test, on directories of this machine, with scripted commands.

usage: self_test.py

Exit code 1: a check failed.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

from checks import check, exit_code

PROGRAM = pathlib.Path(__file__).parents[2] / "packaging/image/root/usr/libexec/approval-token/report-self-test"
STATE = ("/state", "/etc/approval-token", "/var/lib/approval-token", "/var/lib/systemd")


class Start:
    """One start of a board: the exit code of the program, the calls of its commands, and the log on the SD card."""

    def __init__(self, result, text, is_on_trial=False, board='board = "qemu-virt"', mark=0, unmounted=None, notes="",
                 card=0, is_refused=False, has_bundle=False, log="", slots=""):
        with tempfile.TemporaryDirectory() as directory:
            root = pathlib.Path(directory)
            for name in ("boot/firmware", "commands", "proc", "run", "etc/approval-token", "usr/share/approval-token"):
                (root / name).mkdir(parents=True)
            (root / "proc/cmdline").write_text("ro rauc.slot=B " + "approval_token.trial=1 quiet" * is_on_trial + "\n")
            (root / "etc/approval-token/config.toml").write_text(board + "\n")
            (root / "usr/share/approval-token/image-version").write_text("1.2\n")
            (root / "run/approval-token-start.log").write_text(notes)
            (root / "boot/firmware/approval-token.log").write_text(log)
            bundle = root / "boot/firmware/approval-token.raucb"
            if has_bundle:
                bundle.touch()
            if is_refused:
                (root / "run/approval-token-settings-refused").touch()
            if is_on_trial:
                (root / "run/approval-token-trial").touch()
            mounted = f'case " {" ".join(root.as_posix() + place for place in STATE if place != unmounted)} " in\n' \
                '*" $2 "*) exit 0 ;;\nesac\nexit 32\n'
            for command, end in (("mount", f"exit {card}\n"), ("systemctl", ""), ("rauc", f"exit {mark}\n"),
                                 ("mountpoint", mounted), ("fw_printenv", f"printf '{slots}'\n"),
                                 ("runuser", f"printf '{text}'\nexit {result}\n")):
                (root / "commands" / command).write_text(f'#!/bin/sh\necho {command} "$@" >>{root}/calls\n{end}')
                (root / "commands" / command).chmod(0o755)
            environment = {"PATH": f"{root}/commands:{os.environ['PATH']}", "APPROVAL_TOKEN_ROOT": str(root),
                           "APPROVAL_TOKEN_DISK": str(root / "disk"), "APPROVAL_TOKEN_RUN": str(root / "run")}
            self.status = subprocess.run(
                [PROGRAM], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
            log, calls = root / "boot/firmware/approval-token.log", root / "calls"
            text = calls.read_text() if calls.exists() else ""
            self.calls = "".join(line for line in text.splitlines(True) if not line.startswith(("mountpoint", "fw_printenv")))
            self.has_trial_file = (root / "run/approval-token-trial").exists()
            self.has_bundle = bundle.exists()
            self.has_notes = (root / "run/approval-token-start.log").exists()
            self.log = log.read_text() if log.exists() else ""


def check_each_start():
    start = Start(0, "good  vault\\ngood  panel\\n")
    check("it is asked of the service, as its user",
          "--user=approval-token -- approval-token self-test --within" in start.calls)
    check("one that passes writes nothing to the SD card", start.status == 0 and "mount" not in start.calls and not start.log)
    check("and marks no slot", "rauc" not in start.calls)
    start = Start(1, "good  vault\\nBAD   panel: no chip\\n")
    check("one that fails is in the log", start.status == 1 and start.log.rstrip().endswith("  self-test failed: BAD   panel: no chip"))
    check("and does not restart the board", "rauc" not in start.calls and "reboot" not in start.calls)
    start = Start(69, "", board="# board = none")
    check("without a board nothing is tested", start.status == 0 and start.calls == "" and not start.log)
    start = Start(69, "", is_refused=True)
    check("nor when the first settings were refused", start.status == 0 and start.calls == "" and not start.log)


def check_trial():
    passed = Start(0, "good  vault\\n", is_on_trial=True)
    check("after an update, a system that passes is marked good, and its time limit ends", passed.status == 0 and
          "rauc status mark-good" in passed.calls and "systemctl stop approval-token-trial.timer" in passed.calls)
    check("the file that keeps the vault's format is removed then", not passed.has_trial_file)
    check("the log has its version", passed.log.rstrip().endswith("  update: version 1.2 is in use"))
    left = Start(0, "good  vault\\n", is_on_trial=True, has_bundle=True)
    check("an update that a power loss has left on the card is removed before", left.status == 0 and not left.has_bundle and
          left.calls.index("remount,ro") < left.calls.index("rauc status mark-good"))
    locked = Start(0, "good  vault\\n", is_on_trial=True, has_bundle=True, card=32)
    check("a card that stays read-only does not keep it from being marked good", "rauc status mark-good" in locked.calls)
    check("another start leaves it", Start(0, "good  vault\\n", has_bundle=True).has_bundle)
    failed = Start(69, "no service\\n", is_on_trial=True)
    check("one that fails is marked bad, and the board restarts", failed.status == 1 and "mark-good" not in failed.calls and
          failed.calls.index("rauc status mark-bad") < failed.calls.index("systemctl --no-block reboot"))
    check("the log has the reason", "  self-test failed: no service" in failed.log and
          failed.log.rstrip().endswith("  update: version 1.2 is not used: its self-test failed"))
    check("one that fails keeps the file", failed.has_trial_file)
    broken = Start(0, "good  vault\\n", is_on_trial=True, mark=1)
    check("if it cannot be marked good, the time limit stays", broken.status != 0 and "systemctl stop" not in broken.calls)
    check("and the file", broken.has_trial_file)
    source = pathlib.Path(__file__).parents[2] / "Sources/Programs/OneShotCommands/StateOption+Vault.swift"
    check("the programs look for this file", '"/run/approval-token-trial"' in source.read_text())
    broken = Start(1, "BAD   vault\\n", is_on_trial=True, mark=1)
    check("if it cannot be marked bad, the board restarts", "systemctl --no-block reboot" in broken.calls)
    check("a token without a board is kept", "mark-good" in Start(69, "", is_on_trial=True, board="").calls)


def check_failed_update():
    installed = "2026-01-02T03:04:05Z  update: installed, restarting\n"
    # The program runs in slot B.
    used_up = "BOOT_SEQUENCE=5\\nBOOT_ORDER=A B\\nBOOT_A_GOOD=0\\nBOOT_B_GOOD=1\\nBOOT_A_LEFT=0\\nBOOT_B_LEFT=3\\n"
    text = "update: the new system did not start; version 1.2 is in use"

    def lines(log=installed, slots=used_up, **options):
        start = Start(0, "good  vault\\n", log=log, slots=slots, **options)
        return start.status, [line.split("  ", 1)[1] for line in start.log.splitlines()]

    check("an update whose attempts were used up is in the log", lines() == (0, ["update: installed, restarting", text]))
    check("also after other lines", lines(installed + "2026-01-02T03:04:05Z  not enrolled: x\n", notes="a line\n") ==
          (0, ["update: installed, restarting", "not enrolled: x", text, "a line"]))
    once = [f"2026-01-02T03:04:05Z  {line}\n" for line in ("update: installed, restarting", text, "not enrolled: x")]
    check("once", lines("".join(once)) == (0, ["update: installed, restarting", text, "not enrolled: x"]))
    failed = "2026-01-02T03:04:05Z  update: version 2 is not used: its self-test failed\n"
    check("not if its self-test has said more", lines(installed + failed)[1][-1].startswith("update: version 2 is not used"))
    check("nor with an attempt left", lines(slots=used_up.replace("A_LEFT=0", "A_LEFT=1")) == (0, ["update: installed, restarting"]))
    check("nor in the first slot", lines(slots=used_up.replace("A B", "B A")) == (0, ["update: installed, restarting"]))
    check("nor on trial", text not in lines(is_on_trial=True)[1])
    check("a board whose slots cannot be read tests itself", lines(slots="exit") == (0, ["update: installed, restarting"]))


def check_partition_of_state():
    # Without it, the configuration is the one of the root, which has no board.
    for place in STATE:
        trial = Start(69, "", is_on_trial=True, board="# board = none", unmounted=place)
        check(f"after an update, a system without {place} is left", trial.status == 1 and "mark-good" not in trial.calls and
              trial.calls.index("rauc status mark-bad") < trial.calls.index("systemctl --no-block reboot"))
        check("and the log has the reason", f"self-test failed: the partition of the state is not mounted ({place})" in trial.log)
    start = Start(69, "", board="# board = none", unmounted="/state")
    check("at another start it is in the log only", start.status == 1 and "is not mounted (/state)" in start.log and
          "rauc" not in start.calls and "reboot" not in start.calls)
    start = Start(0, "good  vault\\n", notes="a line\nanother\n")
    check("what the start of the system has noted is in the log", start.status == 0 and not start.has_notes and
          [line.split("  ", 1)[1] for line in start.log.splitlines()] == ["a line", "another"])
    broken = Start(1, "BAD   vault\\n", is_on_trial=True, card=32)
    check("a system that fails is left although the log cannot be written",
          "rauc status mark-bad" in broken.calls and "systemctl --no-block reboot" in broken.calls)


if __name__ == "__main__":
    print("the self-test")
    check_each_start()
    check_trial()
    check_failed_update()
    check_partition_of_state()
    sys.exit(exit_code())
