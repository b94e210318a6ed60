#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the synthetic fingers of the tests: fingers.py SEED OUTPUT.pbm. Needs numpy and scipy. alice.pbm has the seed 2,
bob.pbm 3, carol.pbm 6: `MatcherTests` asserts that libfprint's matcher tells them apart.

A finger is a pattern of ridges, 320 by 400 pixels of 1 bit, at 500 dpi. Its directions are those of a loop or whorl
(half the angles at its cores less half those at its deltas, with smooth noise). Its ridges grow from random points, by
filtering repeatedly with Gabor filters of the local direction; minutiae form where they meet.
"""
import sys

import numpy
from scipy.ndimage import gaussian_filter

HEIGHT, WIDTH, DIRECTIONS, ROUNDS, POINTS = 400, 320, 24, 45, 260


def angles(plane, point):
    return numpy.angle(numpy.conj(plane - point))


def directions(random):
    y, x = numpy.mgrid[:HEIGHT, :WIDTH].astype(float)
    plane = x + 1j * y
    center = WIDTH / 2 + random.uniform(-26, 26) + 1j * (HEIGHT * 0.45 + random.uniform(-26, 26))
    kind = random.integers(3)
    if kind == 0:  # a loop
        side = random.choice([-1, 1])
        cores, deltas = [center], [center + side * random.uniform(80, 120) + 1j * random.uniform(110, 150)]
    elif kind == 1:  # a whorl
        half = 1j * random.uniform(12, 30)
        cores = [center - half, center + half]
        deltas = [center + side * random.uniform(90, 130) + 1j * random.uniform(110, 150) for side in (-1, 1)]
    else:  # a tented arch
        cores, deltas = [center], [center + random.uniform(-12, 12) + 1j * random.uniform(90, 130)]
    theta = sum(angles(plane, core) for core in cores) - sum(angles(plane, delta) for delta in deltas)
    noise = gaussian_filter(random.standard_normal((HEIGHT, WIDTH)), 45)
    return theta / 2 + 0.25 * noise / noise.std()


def finger(seed):
    random = numpy.random.default_rng(seed)
    theta = directions(random)
    period = random.uniform(7.8, 10.2)
    ridges = numpy.zeros((HEIGHT, WIDTH))
    ridges[random.integers(0, HEIGHT, POINTS), random.integers(0, WIDTH, POINTS)] = random.choice([-1, 1], POINTS)
    v, u = numpy.meshgrid(numpy.fft.fftfreq(HEIGHT), numpy.fft.fftfreq(WIDTH), indexing="ij")
    filters, width = [], 0.18 / period
    for k in range(DIRECTIONS):
        a = numpy.pi * k / DIRECTIONS
        # A ridge in direction a is a wave across it.
        wx, wy = numpy.sin(a) / period, numpy.cos(a) / period
        filters.append(sum(numpy.exp(-((u - s * wx) ** 2 + (v - s * wy) ** 2) / (2 * width**2)) for s in (-1, 1)))
    nearest = numpy.round(numpy.mod(theta, numpy.pi) / numpy.pi * DIRECTIONS).astype(int) % DIRECTIONS
    for _ in range(ROUNDS):
        spectrum = numpy.fft.fft2(ridges)
        filtered = numpy.zeros_like(ridges)
        for k, f in enumerate(filters):
            mask = nearest == k
            if mask.any():
                filtered[mask] = numpy.fft.ifft2(spectrum * f).real[mask]
        energy = numpy.sqrt(gaussian_filter(filtered**2, period)) + 1e-9
        ridges = numpy.tanh(1.5 * filtered / energy)
    return ridges > 0


def main():
    seed, output = int(sys.argv[1]), sys.argv[2]
    with open(output, "wb") as file:
        file.write(b"P4\n%d %d\n" % (WIDTH, HEIGHT) + numpy.packbits(finger(seed), axis=1).tobytes())


main()
