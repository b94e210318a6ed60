# SPDX-License-Identifier: Apache-2.0
"""The token's package is removed from a board that runs, installed again, and purged. The root is in memory, its state is on
the SD card."""
from machine import Timeout, wait
from package import APT, PACKAGE

UNITS = [f"approval-token{name}" for name in (".service", "-network.service", "-network.socket", "-reset.service", "-secret.service")]
STATE = ["/var/lib/approval-token/vault.sqlite3", "/etc/approval-token/device-secret.cred"]
NONINTERACTIVE = "DEBIAN_FRONTEND=noninteractive"


class Removal:
    def __init__(self, scene, shell):
        self.scene, self.shell = scene, shell

    def states(self, name):
        """What systemd says of each unit."""
        return set(self.shell.run(f"systemctl show --value -p {name} {' '.join(UNITS)}").split())

    def has_state(self):
        found = self.shell.run(f"ls {' '.join(STATE)} 2>/dev/null || true").split()
        if found not in ([], sorted(STATE)):
            raise Timeout(f"a part of the state is gone: only {found} is there")
        return found

    def removed(self):
        self.shell.run(f"{NONINTERACTIVE} dpkg --remove {PACKAGE}", 300)
        wait(300, "the units of a removed package should end", lambda: self.states("ActiveState") == {"inactive"})
        if self.states("LoadState") != {"not-found"} or not self.has_state():
            raise Timeout(f"the units should be gone, and the state not: {self.states('LoadState')}, {self.has_state()}")
        self.scene.step("the package is removed: its units end, the state stays")

    def installed_again(self):
        self.shell.run(f"{NONINTERACTIVE} {APT} install {PACKAGE}", 600)
        self.scene.login()
        self.scene.step("the package is installed again: a login is approved")

    def purged(self):
        self.shell.run(f"echo {PACKAGE} {PACKAGE}/remove-state boolean true | debconf-set-selections")
        self.shell.run(f"{NONINTERACTIVE} dpkg --purge {PACKAGE} 2>&1", 300)
        wait(300, "the units of a purged package should end", lambda: self.states("ActiveState") == {"inactive"})
        left = self.shell.run("ls -A /var/lib/approval-token 2>/dev/null || true")
        if self.states("LoadState") != {"not-found"} or self.has_state() or left:
            raise Timeout(f"the units and the state should be gone: {self.states('LoadState')}, {self.has_state()}, {left}")
        self.scene.step("the package is purged with its state: both are gone")
