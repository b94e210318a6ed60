#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures an enrolled token on an emulated board: its start, and the memory of the whole system when it is idle.

usage: figures.py IMAGE TOKEN_SERVER SCRATCH

Processor time is the guest's own, of both cores: what emulation makes of it is several times what a board needs. Exit
code 1: a measurement failed, or the memory is more than the goal.
"""
import pathlib
import re
import sys

from scene import Scene, run

GOAL = 96
PROCESSES = 6
# The kernel's command line is too short for it: it is read from the FAT partition.
UNIT = """[Unit]
After=approval-token.service
[Service]
Type=oneshot
ExecStart=/bin/sh /boot/firmware/figures.sh
"""
SCRIPT = r"""read -r up idle </proc/uptime
read -r cpu user nice system idle wait irq soft rest </proc/stat
echo "figure ready $up $((user + nice + system + irq + soft))"
of() { systemctl show --value -p "$1" approval-token.service; }
echo "figure service $(of CPUUsageNSec) $(of InactiveExitTimestampMonotonic) $(of ActiveEnterTimestampMonotonic)"
sleep 120
awk '/^(MemTotal|MemFree|MemAvailable|Cached|Slab|SReclaimable|Shmem|AnonPages|KernelStack|PageTables|Percpu|VmallocUsed):/ { print "figure", $1, $2 }' /proc/meminfo
# The kernel keeps these free.
awk '/^ +high / { pages += $2 } END { print "figure", "Watermarks:", pages * 4 }' /proc/zoneinfo
for unit in /sys/fs/cgroup/system.slice/*.service; do
  echo "figure unit ${unit##*/} $(awk '/^anon / { print $2 }' "$unit/memory.stat")"
done
for unit in approval-token approval-token-network; do
  awk -v "unit=$unit" '
    /^[0-9a-f]+-[0-9a-f]+ / { name = $6 == "" ? ($2 ~ /^---/ ? "guard-pages" : "other") : $6 }
    /^Size:/ && $2 == 8192 { name = "stacks" }
    /^Anonymous:/ { sizes[name] += $2 }
    END { for (name in sizes) if (sizes[name] >= 40) print "figure mapping", unit, sizes[name], name }
  ' "/proc/$(systemctl show --value -p MainPID "$unit.service")/smaps"
done
echo "figure time $(systemctl is-active chrony.service) end"
"""


def measure(scene):
    scene.power_on()
    scene.enroll()
    scene.login()
    scene.machine.power_off()
    scene.card.put("figures.sh", SCRIPT)
    scene.power_on(unit=UNIT)
    scene.says("figure time", 900)
    text = scene.machine.text()

    def figures(expression):
        return re.findall(expression, text)

    ((up, ticks),) = figures(r"figure ready ([\d.]+) (\d+)")
    ((used, left, entered),) = figures(r"figure service (\d+) (\d+) (\d+)")
    memory = {name: int(value) / 1024 for name, value in figures(r"figure (\w+): (\d+)")}
    in_use = memory["MemTotal"] - memory["MemAvailable"]
    print(f"  power-on to ready: {float(up):.1f} s after the kernel's start, {int(ticks) / 100:.1f} s of processor time")
    print(f"  start of the service: {(int(entered) - int(left)) / 1e6:.2f} s, {int(used) / 1e9:.2f} s of processor time")
    print(f"  memory of the whole system, idle: {in_use:.1f} MiB (goal: {GOAL}; {'met' if in_use <= GOAL else 'missed'})")
    print("    " + ", ".join(f"{name} {value:.1f}" for name, value in memory.items()))
    units = sorted(((int(size) / 2**20, name) for name, size in figures(r"figure unit (\S+) (\d+)")), reverse=True)
    print("    anonymous memory: " + ", ".join(f"{name} {size:.1f}" for size, name in units[:12]))
    both = sum(size for size, name in units if name in ("approval-token.service", "approval-token-network.service"))
    print(f"    the device process and the network process together: {both:.2f} MiB (goal: {PROCESSES}; "
          f"{'met' if both <= PROCESSES else 'missed'})")
    for unit in ("approval-token", "approval-token-network"):
        mappings = figures(rf"figure mapping {unit} (\d+) (\S+)")
        sizes = sorted(((int(size), name.rpartition("/")[2]) for size, name in mappings), reverse=True)
        print(f"      of {unit}.service, KiB: " + ", ".join(f"{name} {size}" for size, name in sizes))
    (clock,) = figures(r"figure time (\S+) end")
    print(f"  the service of the time is {clock}")
    scene.machine.power_off()
    if in_use > GOAL:
        raise RuntimeError(f"the system uses {in_use:.1f} MiB")


def main():
    image, program, scratch = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    scene = Scene(program, scratch)

    def steps():
        scene.flash(image)
        measure(scene)

    return run(scene, steps)


if __name__ == "__main__":
    sys.exit(main())
