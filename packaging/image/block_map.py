# SPDX-License-Identifier: Apache-2.0
"""Writes the block map of an image: which blocks of a card are to be written (bmaptool's format, version 2.0).

usage: block_map.py IMAGE

All blocks are, except those in no partition, and the free clusters of the FAT partition. It does not matter what these contain.
Blocks of zeros are listed, too: otherwise the former contents of the SD card would stay there.
"""
import hashlib
import os
import struct
import sys

BLOCK = 4096
FAT32_LBA = 0x0C


def partitions(image):
    """(type, offset, size) of each partition in the master boot record, in bytes."""
    record = image.read(512)
    for number in range(4):
        entry = record[446 + 16 * number : 462 + 16 * number]
        start, sectors = struct.unpack("<II", entry[8:])
        if entry[4]:
            yield entry[4], 512 * start, 512 * sectors


def used_in_fat(image, offset):
    """(begin, end) of the parts in use of a FAT32 file system: its tables, and the clusters that are not free."""
    image.seek(offset)
    sector = image.read(512)
    (sector_size, per_cluster, reserved, copies) = struct.unpack_from("<HBHB", sector, 11)
    (table_sectors,) = struct.unpack_from("<I", sector, 36)
    table, data = offset + reserved * sector_size, offset + (reserved + copies * table_sectors) * sector_size
    yield offset, data
    image.seek(table)
    entries = struct.unpack(f"<{table_sectors * sector_size // 4}I", image.read(table_sectors * sector_size))
    size = per_cluster * sector_size
    for number, value in enumerate(entries):
        # The first two entries have no clusters.
        if number >= 2 and value & 0x0FFFFFFF:
            yield data + (number - 2) * size, data + (number - 1) * size


def ranges(image):
    """(first, last) of the blocks to be written, in order, the last included."""
    parts = [(0, 512)]
    for kind, offset, size in partitions(image):
        parts += used_in_fat(image, offset) if kind == FAT32_LBA else [(offset, offset + size)]
    found = []
    for begin, end in sorted(parts):
        first, last = begin // BLOCK, (end - 1) // BLOCK
        if found and first <= found[-1][1] + 1:
            found[-1][1] = max(last, found[-1][1])
        else:
            found.append([first, last])
    return found


def checksum(image, first, last):
    image.seek(first * BLOCK)
    digest = hashlib.sha256()
    for _ in range(first, last + 1):
        digest.update(image.read(BLOCK))
    return digest.hexdigest()


def block_map(path):
    size = os.path.getsize(path)
    with open(path, "rb") as image:
        found = ranges(image)
        lines = [
            f'    <Range chksum="{checksum(image, first, last)}"> {first}-{last} </Range>' for first, last in found]
    mapped = sum(last - first + 1 for first, last in found)
    own = "0" * 64
    text = "\n".join([
        '<?xml version="1.0" ?>', '<bmap version="2.0">', f"  <ImageSize> {size} </ImageSize>",
        f"  <BlockSize> {BLOCK} </BlockSize>", f"  <BlocksCount> {-(-size // BLOCK)} </BlocksCount>",
        f"  <MappedBlocksCount> {mapped} </MappedBlocksCount>", "  <ChecksumType> sha256 </ChecksumType>",
        f"  <BmapFileChecksum> {own} </BmapFileChecksum>", "  <BlockMap>", *lines, "  </BlockMap>", "</bmap>", ""])
    # The checksum of this file with zeros in its place.
    return text.replace(own, hashlib.sha256(text.encode()).hexdigest(), 1)


if __name__ == "__main__":
    sys.stdout.write(block_map(sys.argv[1]))
