#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the image's program that resets the token with approval-token.reset, on directories of this machine, with scripted
commands; and the package's program that finishes a reset.

usage: reset.py

Exit code 1: a check failed.
"""
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile

from checks import check, exit_code

PACKAGING = pathlib.Path(__file__).parents[2] / "packaging"
PROGRAM = PACKAGING / "image/root/usr/libexec/approval-token/reset-from-card"
FINISH = PACKAGING / "debian/finish-factory-reset"
# Of the former owner, besides the device secret, the state of the service, and what is overwritten.
FORMER = ["/state/hostname", "/state/enrollment-uri.sha256", "/etc/approval-token/activation-server"]


class Start:
    """One start of a board with approval-token.reset on the SD card."""

    def __init__(self, result=0, runs=True, has_network=True):
        with tempfile.TemporaryDirectory() as directory:
            root = pathlib.Path(directory)
            for name in ("boot/firmware", "var/lib/approval-token", "run", "commands"):
                (root / name).mkdir(parents=True)
            file = root / "boot/firmware/approval-token.reset"
            file.touch()
            for command in ("mount", "systemctl", "runuser"):
                (root / "commands" / command).write_text(
                    f'#!/bin/sh\nif [ "$1" = is-active ]; then exit {0 if runs else 3}; fi\n'
                    f'echo {command} "$@" >>{root}/commands.log\n'
                    + (f"ls {file} >>{root}/commands.log 2>/dev/null\necho how it went\nexit {result}\n"
                       if command == "runuser" else "")
                    + (f'if [ "$1" = start ]; then ls {file} >>{root}/commands.log; exit {0 if has_network else 1}; fi\n'
                       if command == "systemctl" else ""))
                (root / "commands" / command).chmod(0o755)
            # A power loss leaves it.
            service = socket.socket(socket.AF_UNIX)
            service.bind(str(root / "var/lib/approval-token/control.sock"))
            environment = {"PATH": f"{root}/commands:{os.environ['PATH']}", "APPROVAL_TOKEN_ROOT": str(root)}
            self.status = subprocess.run([PROGRAM], env=environment, stdout=subprocess.DEVNULL).returncode
            service.close()
            self.is_erased = not file.exists()
            self.log = (root / "boot/firmware/approval-token.log").read_text()
            calls = root / "commands.log"
            self.commands = calls.read_text() if calls.exists() else ""


def check_card():
    done = Start()
    check("a reset is asked for", "approval-token factory-reset --state" in done.commands and done.status == 0)
    question = done.commands.find("runuser")
    check("the file is erased before the button is held", done.is_erased and
          "approval-token.reset\n" not in done.commands[question:])
    network = done.commands.find("systemctl start network-online.target")
    check("a network is waited for before, while the file is still there", 0 <= network < question and
          "approval-token.reset\n" in done.commands[network:question])
    check("the board restarts, and the log says it",
          "systemctl --no-block reboot" in done.commands and "  reset: how it went" in done.log)
    alone = Start(has_network=False)
    check("a reset is done without a network, too", "runuser" in alone.commands and "  reset: how it went" in alone.log)
    refused = Start(result=77)
    check("without a hold the board does not restart, and asks no more",
          "reboot" not in refused.commands and refused.is_erased and "not reset: how it went" in refused.log)
    absent = Start(runs=False)
    check("without the service the file stays, and nothing is waited for", not absent.is_erased and
          "runuser" not in absent.commands and "network" not in absent.commands and absent.status == 0)


def check_units():
    units = {path.name: path.read_text() for path in (PACKAGING / "image/root/etc/systemd/system").rglob("*")
             if path.is_file()}
    check("no unit of the image makes each start wait for a network", "approval-token-card-reset.service" in units and
          not [name for name, text in units.items() if "network-online" in text])
    unit = (PACKAGING / "debian/approval-token.approval-token-reset.service").read_text()
    steps = [line.rsplit(" ", 1) for line in unit.splitlines() if line.startswith("ExecStart=")]
    program = "/usr/libexec/approval-token/finish-factory-reset"
    check("the state is overwritten as the service's user, and the rest removed as root", steps ==
          [[f"ExecStart=+{program}", "secret"], [f"ExecStart={program}", "state"], [f"ExecStart=+{program}", "rest"]])


def check_image():
    unit = (PACKAGING / "image/root/etc/systemd/system/approval-token-reset.service.d/image.conf").read_text()
    removed = [word for line in unit.splitlines() if line.startswith("ExecStartPre=+") for word in line.split()]
    check("the image removes what else is of the former owner", set(FORMER) <= set(removed))
    steps = [line.split("=+", 1)[1] for line in unit.splitlines() if "/bin/find" in line]
    check("one step overwrites secrets", len(steps) == 1)
    # The clock of a board without one is behind at its start: journalctl would remove nothing by time.
    check("the journal is removed whatever the time is", "--vacuum-size=1" in removed and "--vacuum-time" not in unit)
    wifi = (PACKAGING / "image/root/etc/systemd/system/wpa_supplicant@.service.d/image.conf").read_text()
    after = [word for line in wifi.splitlines() if line.startswith("After=") for word in line.removeprefix("After=").split()]
    check("the Wi-Fi starts after it", "approval-token-reset.service" in after)
    check_overwriting(steps[0])
    programs = "".join(path.read_text() for path in PROGRAM.parent.iterdir())
    check("which its programs write", all(f"$root{path}" in programs for path in FORMER))


def check_overwriting(step):
    """Runs the step of the unit that overwrites secrets, on other directories."""
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        for part in ("etc", "systemd"):
            (directory / part).mkdir()
        command = step.replace("/etc/approval-token", f"{directory}/etc").replace("/var/lib/systemd", f"{directory}/systemd")

        def run():
            return subprocess.run(command.split(), stderr=subprocess.DEVNULL).returncode

        check("without secrets there is no error", run() == 0)
        # A power loss leaves the second one.
        secrets = [directory / file for file in ("etc/wifi.conf", "etc/wifi.conf.new", "systemd/credential.secret")]
        others = [directory / "etc/config.toml", directory / "systemd/random-seed"]
        for file in secrets + others:
            file.write_text("secret")
        for file in secrets:
            os.link(file, directory / file.name)
        check("secrets are overwritten and removed, also what a power loss has left", run() == 0 and
              not any(file.exists() for file in secrets) and
              not any((directory / file.name).read_bytes().strip(b"\0") for file in secrets))
        check("and no other file", all(file.read_text() == "secret" for file in others))
        # Only root can make what root cannot change, and not on every file system.
        secrets[2].write_text("secret")
        if os.geteuid() == 0 and subprocess.run(["chattr", "+i", secrets[2]], stderr=subprocess.DEVNULL).returncode == 0:
            failed = run() != 0
            subprocess.run(["chattr", "-i", secrets[2]], check=True)
            check("what cannot be overwritten is an error", failed and secrets[2].exists())
        else:
            print("not checked: a secret that cannot be overwritten; it takes root, and a file system with chattr")


def finished(directory, part, user=None):
    """Runs the package's program with other directories."""
    text = FINISH.read_text().replace("/var/lib/approval-token", f"{directory}/state")
    program = directory / "finish"
    program.write_text(text.replace("/etc/approval-token", f"{directory}/etc"))
    return subprocess.run(["/bin/sh", program, part], stderr=subprocess.DEVNULL, user=user).returncode == 0


def check_package():
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        for part in ("etc", "state/deeper"):
            (directory / part).mkdir(parents=True)
        secret, vault, other = directory / "etc/device-secret.cred", directory / "state/vault.sqlite3", directory / "other"
        for file in (secret, vault, other, directory / "etc/config.toml", directory / "state/factory-reset",
                     directory / "state/deeper/file"):
            file.write_text("secret")
        (directory / "state/link").symlink_to(other)
        for file, copy in ((secret, "secret-blocks"), (vault, "vault-blocks")):
            os.link(file, directory / copy)
        check("the device secret is removed, the configuration stays", finished(directory, "secret") and
              [path.name for path in (directory / "etc").iterdir()] == ["config.toml"])
        check("the state is removed, and then the marker", finished(directory, "state") and
              (directory / "state/factory-reset").exists() and finished(directory, "rest") and
              not list((directory / "state").iterdir()))
        blocks = [(directory / copy).read_bytes() for copy in ("secret-blocks", "vault-blocks")]
        check("both are overwritten", all(not block.strip(b"\0") for block in blocks))
        check("what a link names stays", other.read_text() == "secret")
        check("without a marker there is an error", not finished(directory, "rest"))
        # Only root can make what the service's user cannot change.
        if os.geteuid() == 0:
            check_package_with_files_of_root(directory, other)


def check_package_with_files_of_root(directory, other):
    state, user = directory / "state", 65534
    os.chmod(directory, 0o755)
    for part in ("deeper", "of-root", "lost+found", "above/mounted"):
        (state / part).mkdir(parents=True)
    vault, blocks = state / "vault.sqlite3", directory / "blocks"
    for file in (vault, state / "copy.bak", state / "of-root/file", state / "of-root/factory-reset", state / "lost+found/#12",
                 state / "factory-reset"):
        file.write_text("secret")
    (state / "copy.bak").chmod(0o600)
    (state / "lost+found").chmod(0o700)
    (state / "deeper/link").symlink_to(directory / "etc")
    (state / "lost").symlink_to(other)
    os.link(vault, blocks)
    for path in (state, vault, state / "factory-reset", state / "deeper"):
        shutil.chown(path, user)
    mount = subprocess.run(["mount", "-t", "tmpfs", "none", state / "above/mounted"], stderr=subprocess.DEVNULL)
    mounted = state / "above/mounted/file"
    mounted.touch()
    try:
        check("the service's user overwrites its files, whatever root has put there", finished(directory, "state", user=user) and
              not blocks.read_bytes().strip(b"\0") and not vault.exists())
        check("then files and directories of root are removed, too", finished(directory, "rest") and
              {path.name for path in state.iterdir()} <= {"lost+found", "above"} and not list((state / "lost+found").iterdir()))
        check("what links name stays", other.read_text() == "secret" and (directory / "etc/config.toml").exists())
        # Without the privilege to mount, this is a directory as others.
        check("and so does another file system", mounted.exists() == (mount.returncode == 0))
    finally:
        if mount.returncode == 0:
            subprocess.run(["umount", state / "above/mounted"], check=True)


if __name__ == "__main__":
    print("the factory reset")
    check_card()
    check_units()
    check_image()
    check_package()
    sys.exit(exit_code())
