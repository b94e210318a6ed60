#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the image's program that chooses the board by the device tree, on directories of this machine. The boards that
it knows are those of the image.

usage: choose_board.py

Exit code 1: a check failed.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from boards import BOARDS
from checks import check, exit_code

REPOSITORY = pathlib.Path(__file__).parents[2]
PROGRAM = REPOSITORY / "packaging/image/root/usr/libexec/approval-token/choose-board"
SETTINGS = '# board = "x"\nstate = "/s"\n'
MARK = " # by the device tree"


def start(compatible, configuration=SETTINGS, settings=False):
    """Returns the status, the configuration and the log after a start of a board, with approval-token.toml if `settings`."""
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        for name in ("boot/firmware", "etc/approval-token", "state", "run", "commands", "proc/device-tree"):
            (root / name).mkdir(parents=True)
        (root / "etc/approval-token/config.toml").write_text(configuration)
        (root / "proc/device-tree/compatible").write_bytes(b"".join(name.encode() + b"\0" for name in compatible))
        if settings:
            (root / "boot/firmware/approval-token.toml").touch()
        for command in ("mount", "systemctl", "systemd-run"):
            (root / "commands" / command).write_text("#!/bin/sh\n")
            (root / "commands" / command).chmod(0o755)
        environment = {"PATH": f"{root}/commands:{os.environ['PATH']}", "APPROVAL_TOKEN_ROOT": str(root)}
        status = subprocess.run([PROGRAM], env=environment, stdout=subprocess.DEVNULL).returncode
        log = root / "boot/firmware/approval-token.log"
        return status, (root / "etc/approval-token/config.toml").read_text(), log.read_text() if log.exists() else ""


def main():
    print("the board by the device tree")
    models = {
        "raspberry-pi-3": ["raspberrypi,3-model-b", "raspberrypi,3-model-b-plus", "raspberrypi,3-model-a-plus"],
        "raspberry-pi-4": ["raspberrypi,4-model-b"],
        "raspberry-pi-zero-2w": ["raspberrypi,model-zero-2-w"],
    }
    lists = re.findall(r"^readonly image_boards=\((.*)\)$", (REPOSITORY / "scripts/image").read_text(), re.M)
    chosen = re.findall(r"\bboard=([\w-]+) ;;$", PROGRAM.read_text(), re.M)
    check("scripts/image, the program and boards.py name the same boards",
          len(lists) == 1 and sorted(lists[0].split()) == sorted(chosen) == sorted(BOARDS) == sorted(models))
    for board, names in models.items():
        check(f"{board} has a profile", (REPOSITORY / f"boards/{board}/board.toml").exists())
        for name in names:
            status, configuration, log = start([name, "brcm,bcm2837"])
            check(f"{name} is {board}", status == 0 and configuration == f'board = "{board}"{MARK}\n' + SETTINGS and
                  log.endswith(f"the board is {board}, by its device tree\n"))
    mine = 'board = "mine"\n' + SETTINGS
    check("a board that was chosen stays", start(["raspberrypi,4-model-b"], mine) == (0, mine, ""))
    status, chosen, _ = start(["raspberrypi,3-model-b"])
    check("a second start changes nothing", start(["raspberrypi,3-model-b-plus"], chosen) == (0, chosen, ""))
    status, moved, log = start(["raspberrypi,4-model-b"], chosen)
    check("in another model, the board that was chosen by the device tree is chosen again", status == 0 and
          moved == f'board = "raspberry-pi-4"{MARK}\n' + SETTINGS and log.endswith("the board is raspberry-pi-4, by its device tree\n"))
    check("but not in an unknown one", start(["raspberrypi,5-model-b"], chosen) == (0, chosen, ""))
    mine = chosen.replace(MARK, "")
    check("nor one that approval-token.toml has chosen", start(["raspberrypi,4-model-b"], mine) == (0, mine, ""))
    for name in ("linux,dummy-virt", "raspberrypi,5-model-b", "raspberrypi,4-model-bx", ""):
        status, configuration, log = start([name])
        check(f'"{name}" is no board of the image, which the log says', status == 0 and configuration == SETTINGS and
              log.endswith(f"there is no board for {name}: name one in approval-token.toml; the token does not start\n"))
        check("but not if approval-token.toml names one, or is wrong", start([name], settings=True) == (0, SETTINGS, ""))
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
