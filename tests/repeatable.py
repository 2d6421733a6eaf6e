"""Noise that is the same in every run, for tests of what follows a measurement."""

from itertools import count

from wayveil.privacy.noise import SeededNoise


class RepeatableNoise(SeededNoise):
    """Seeded noise whose releases are marked private, to test the output that describes a private release.

    With real noise such a test fails by chance: a small city has few trips, and many limits of synthesis, audits and
    warnings depend on noisy numbers. Tests of the noise itself use `OpenDPNoise`.
    """

    private = True


def patched(monkeypatch, first=0):
    """Let measurements without `noise=` draw from consecutive seeds, so that two of them still differ."""
    import importlib

    seeds = count(first)
    pipeline = importlib.import_module("wayveil.measurement.pipeline")
    monkeypatch.setattr(pipeline, "OpenDPNoise", lambda: RepeatableNoise(next(seeds)))
