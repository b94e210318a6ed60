#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Boots an image with an SSH server on an emulated board, and logs in.

usage: ssh_boot.py IMAGE TOKEN_SERVER SECRET_KEY SCRATCH

SECRET_KEY belongs to a key of the image. Exit code 1: a step failed.
"""
import pathlib
import subprocess
import sys

from machine import Timeout, wait
from scene import Scene, run
from ssh import fingerprint


class Client:
    def __init__(self, scene, scratch):
        self.scene, self.known = scene, scratch / "known_hosts"

    def run(self, key, command):
        """Runs a command as root on the board, whose key must be that of the first connection."""
        return subprocess.run(
            ["ssh", "-F", "none", "-i", key, "-p", str(self.port), "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes",
             "-o", "StrictHostKeyChecking=accept-new", "-o", f"UserKnownHostsFile={self.known}", "-o", "HashKnownHosts=no",
             "-o", "HostKeyAlias=board", "-o", "ConnectTimeout=20", "root@127.0.0.1", command],
            stdin=subprocess.DEVNULL, capture_output=True, text=True)

    def connect(self, key):
        self.port = self.scene.machine.forward(22)
        done = wait(300, "the SSH server should take the key",
                    lambda: (done := self.run(key, "id -u; hostname")).returncode == 0 and done)
        if done.stdout != "0\ntoken-of-alice\n":
            raise Timeout(f"the board answers {done.stdout!r}")

    def host_key(self, scratch):
        """The fingerprint of the board's key."""
        public = scratch / "host.pub"
        public.write_text(self.known.read_text().split(" ", 1)[1])
        return fingerprint(public)


def steps(scene, image, key, scratch):
    other, client = scratch / "other", Client(scene, scratch)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", other], check=True)
    scene.flash(image)
    scene.power_on()
    scene.enroll()
    client.connect(key)
    scene.step("root logs in with the key of the image")
    refused = client.run(other, "true")
    if refused.returncode != 255 or "Permission denied (publickey)" not in refused.stderr:
        raise Timeout(f"another key: exit code {refused.returncode}: {refused.stderr}")
    scene.step("another key is refused, and there is no other way")
    scene.machine.power_off()
    host_key = client.host_key(scratch)
    if f"the SSH host key is {host_key}\n" not in scene.card.get("approval-token.log").decode():
        raise Timeout(f"the log on the SD card has no line with the host key {host_key}")
    print("  ok           the log on the SD card has the fingerprint of the host key", flush=True)
    scene.power_on()
    client.connect(key)
    scene.step("after a restart the host key is the same")
    scene.login()
    scene.step("a login is approved with the button")
    scene.machine.power_off()


def main():
    image, program, key, scratch = (pathlib.Path(argument) for argument in sys.argv[1:])
    scene = Scene(program, scratch)
    return run(scene, lambda: steps(scene, image, key, scratch))


if __name__ == "__main__":
    sys.exit(main())
