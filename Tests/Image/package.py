# SPDX-License-Identifier: Apache-2.0
"""The token's package, repacked from the image with a higher version, in a repository for apt on the FAT partition."""
import hashlib
import re
import subprocess

PACKAGE = "approval-token"
CONFFILE = "etc/approval-token/config.toml"
APT = ("apt-get --yes -o Dir::Etc::SourceList=/boot/firmware/sources.list -o Dir::Etc::SourceParts=/nonexistent "
       "-o Dpkg::Options::=--force-confold")


def put_upgrade(card, directory):
    """Returns the version."""
    directory.mkdir()
    tree, information = directory / "tree", f"var/lib/dpkg/info/{PACKAGE}."
    present = re.findall(r" squashfs-root/(\S+)$", card.root_names(), re.M)
    sums = card.root_file(f"{information}md5sums").decode().splitlines()
    # Without the manual pages, which the image does not have.
    files = [CONFFILE, *set(present).intersection(line.split(maxsplit=1)[1] for line in sums)]
    subprocess.run(
        ["unsquashfs", "-quiet", "-no-progress", "-offset", str(card.slots["A"].root.offset), "-d", tree, card.path, *files],
        check=True, stdout=subprocess.DEVNULL)
    (tree / "DEBIAN").mkdir()
    for name in present:
        if name.startswith(information) and not name.endswith((".list", ".md5sums")):
            script = tree / "DEBIAN" / name.removeprefix(information)
            script.write_bytes(card.root_file(name))
            script.chmod(0o755)
    # Its default has changed, and so has the file on the board.
    with open(tree / CONFFILE, "a") as file:
        file.write("# Of a later version.\n")
    entries = card.root_file("/var/lib/dpkg/status").decode().split("\n\n")
    (entry,) = (entry for entry in entries if entry.startswith(f"Package: {PACKAGE}\n"))
    entry = re.sub(r"^(Status|Conffiles):.*\n( .*\n?)*", "", entry + "\n", flags=re.M)
    entry = re.sub(r"^(Version: .*)$", r"\1+later", entry, flags=re.M)
    (tree / "DEBIAN/control").write_text(entry)
    package = directory / "later.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "--build", tree, package], check=True, stdout=subprocess.DEVNULL)
    card.put_file(package.name, package)
    data = package.read_bytes()
    card.put("Packages", f"{entry}Filename: ./{package.name}\nSize: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\n")
    card.put("sources.list", "deb [trusted=yes] file:/boot/firmware ./\n")
    return re.search(r"^Version: (.*)$", entry, re.M)[1]
