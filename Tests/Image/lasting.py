# SPDX-License-Identifier: Apache-2.0
"""What a board keeps over restarts, read from the partition STATE of its SD card while it has no power."""
import os
import re
import shutil
import subprocess

from machine import Timeout

SBIN = os.environ | {"PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"}


class State:
    def __init__(self, card, directory):
        self.file, journal = directory / "state.img", directory / "journal"
        card.copy(card.state, self.file)
        # As the next start does.
        subprocess.run(["e2fsck", "-p", self.file], env=SBIN, capture_output=True)
        self.machine_id, self.secret, self.seed = map(
            self.debugfs, ("cat /machine-id", "cat /var/lib/systemd/credential.secret", "cat /var/lib/systemd/random-seed"))
        # chrony sets the clock to its date.
        self.clock = int(re.search(rb"^ mtime: 0x(\w+)", self.debugfs("stat /var/lib/chrony/chrony.drift"), re.M)[1], 16)
        self.debugfs(f"rdump /var/log/journal {directory}")
        files = b"".join(path.read_bytes() for path in journal.glob("*/*.journal"))
        self.boots = set(re.findall(rb"_BOOT_ID=([0-9a-f]{32})", files))
        shutil.rmtree(journal)
        self.file.unlink()

    def debugfs(self, command):
        return subprocess.run(["debugfs", "-R", command, self.file], env=SBIN, check=True, capture_output=True).stdout


def give_files_to_others(card):
    """As if a former system had given its user another number."""
    partition, directory = f"{card.path}?offset={card.state.offset}", "/var/lib/approval-token"

    def debugfs(commands):
        return subprocess.run(["debugfs", "-w", "-f", "-", partition], env=SBIN, input=commands, check=True, capture_output=True,
                              text=True).stdout

    listed = re.findall(r"^/\d+/\d+/\d+/\d+/([^/]+)/", debugfs(f"ls -p {directory}\n"), re.M)
    names = [f"{directory}/{name}" for name in listed if name != ".."]
    if not any(name.endswith(".sqlite3") for name in names):
        raise Timeout(f"the partition of the state has no vault: {names}")
    debugfs("".join(f"sif {name} {field} 4321\n" for name in names for field in ("uid", "gid")))
    print(f"  ok           another user owns {len(names)} files of the state", flush=True)


class Lasting:
    def __init__(self, scene):
        self.scene, self.last = scene, None

    def check(self, was_shut_down=True):
        """Compares what is there after a boot with what was there after the former one. Only the end of chrony writes the time,
        at least without a time server."""
        before, now = self.last, State(self.scene.card, self.scene.directory)
        self.last = now
        if not before:
            conditions = {
                "a machine id": re.fullmatch(rb"[0-9a-f]{32}\n", now.machine_id), "a key of the device secret": now.secret,
                "a random seed": len(now.seed) >= 32, "one boot in the journal": len(now.boots) == 1}
        else:
            conditions = {
                "the same machine id": now.machine_id == before.machine_id,
                "the same key of the device secret": now.secret == before.secret,
                "another random seed": len(now.seed) >= 32 and now.seed != before.seed,
                "the earlier boots in the journal, and another one": now.boots > before.boots,
                "a later time for the next start" if was_shut_down else "the same time for the next start":
                    now.clock > before.clock if was_shut_down else now.clock == before.clock}
        missing = [what for what, holds in conditions.items() if not holds]
        if missing:
            raise Timeout(f"the partition of the state does not have: {', '.join(missing)}")
        print(f"  ok           the partition of the state has {', '.join(conditions)}", flush=True)
