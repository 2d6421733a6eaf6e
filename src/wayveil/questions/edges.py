"""Edges of bins: the shapes that several quantities share, and how they are read from JSON."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from wayveil.core.bins import Bins

_TOLERANCE = 1e-9
"""Edges that differ by less are equal: processors round the last bit of a power differently."""


def linear_then_wider(width: float, knee: float, growth: float, top: float) -> Bins:
    """Bins of equal `width` up to `knee`, then each wider than the one before by the factor e^growth, to `top`."""
    linear = np.arange(0.0, min(knee, top), width)
    steps = int(np.ceil(np.log(max(top / knee, 1.0)) / growth))
    tail = knee * np.exp(growth * np.arange(steps + 1)) if top > knee else np.array([top])
    return Bins(tuple(float(v) for v in np.r_[linear, tail]))


def logarithmic(low: float, high: float, count: int) -> Bins:
    """A first bin below `low`, then `count` − 1 bins of equal ratio to `high`."""
    return Bins((0.0, *(float(v) for v in np.exp(np.linspace(np.log(low), np.log(high), count)))))


def read_edges(edges: Any, possible: Iterable[Bins]) -> Bins:
    """Bins from a JSON list of edges, which must be one of the possible ones; ValueError for anything else.

    The last bit of an edge may differ: the exponential function differs between processors.
    """
    if not isinstance(edges, list) or not all(type(value) in (int, float) for value in edges):
        raise ValueError("edges")
    for bins in possible:
        if len(bins.edges) == len(edges) and np.allclose(edges, bins.edges, rtol=_TOLERANCE, atol=_TOLERANCE):
            return Bins(tuple(edges))
    raise ValueError("edges")
