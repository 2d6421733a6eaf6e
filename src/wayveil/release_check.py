"""Whether a release fits together: costs with noise, shapes with grids and bins; an altered file rarely does."""

import math
from itertools import pairwise
from typing import Any

from wayveil import plan
from wayveil.errors import ReleaseError
from wayveil.grid import Grid, base_grid, level_shape
from wayveil.privacy.unit import Unit
from wayveil.questions.detail_weights import FEWEST, MOST
from wayveil.release import Answer, Release
from wayveil.week import PARTS_OF_WEEK

_TOLERANCE = 1e-6
_WRONG_NOISE = "The noise of '{}' is not the one that was paid for; the release was altered."
_FIELDS = ("occupancy", "end_points", "start_minus_end")
_NEEDED = {
    "occupancy": ("side",),
    "end_points": ("side",),
    plan.HOURS: ("cuts",),
    "occupancy/detail": ("sides", "parts"),
    "end_points/detail": ("sides", "parts"),
    "start_minus_end": ("side",),
    "length": ("edges",),
    "duration": ("edges",),
    "duration/spikes": ("edges",),
    "mean_speed": ("edges",),
    "top_speed": ("edges",),
    "mean_interval": ("edges",),
    "beat": ("edges",),
    "gap_ratio": ("edges",),
    "displacement": ("edges",),
    "displacement_length": ("displacement_edges", "length_edges"),
    "length_duration": ("length_edges", "duration_edges"),
    "origin_destination/coarse": ("merged",),
    "origin_destination/fine": ("cuts",),
}


def check_release(release: Release) -> None:
    """ReleaseError unless every answer's noise is the one its cost needs, and its shape the one its parameters say.

    Privacy: free (post-processing).
    """
    # With a cap of one the noise is that of a trajectory: only the words tell which of the two was promised.
    if release.neighbours != Unit(release.unit, release.max_per_user).describe():
        raise ReleaseError("The unit and its neighbouring relation do not fit; the release was altered.")
    _check_noise(release)
    grid = base_grid(release.scope)
    for answer in release.answers:
        if not (_fits_detail(answer, release, grid) if answer.name in plan.DETAILS else _fits(answer, grid)):
            raise ReleaseError(f"The answer '{answer.name}' does not fit its own description; the release was altered.")


def check_complete(release: Release) -> None:
    """ReleaseError unless every answer that synthesis needs is there, with what it needs to know about it."""
    for name in _needed_names(release):
        answer = release[name]
        for parameter in _NEEDED.get(name, _NEEDED.get(name.partition("/")[0], ())):
            if parameter not in answer.parameters:
                raise ReleaseError(f"The answer '{name}' lacks its '{parameter}'; the release was altered.")


def _needed_names(release: Release) -> list[str]:
    """The plan's answers; in a release that was made before there was a detail, its middle and fine cells instead."""
    planned = [name for name in plan.SHARES if name not in plan.YOUNGER or name in release]
    planned += [plan.HOURS] if plan.HOURS in release else []
    earlier = [name.replace("detail", level) for name in plan.DETAILS for level in ("middle", "fine")]
    if not any(name in release for name in earlier):
        return planned
    if any(name in release for name in plan.DETAILS):
        raise ReleaseError("The release has the answers of two versions of wayveil; the release was altered.")
    return [name for name in planned if name not in plan.DETAILS] + earlier


def _among(edges: list[float], fine: tuple[float, ...]) -> bool:
    """Whether merged bins have the ends of the fine ones, and no edge that these have not."""
    same_ends = math.isclose(edges[0], fine[0]) and math.isclose(edges[-1], fine[-1])
    return same_ends and all(min(abs(edge - other) for other in fine) < _TOLERANCE * max(edge, 1.0) for edge in edges)


def _check_noise(release: Release) -> None:
    """b = c·resolution/ε_v; with a δ, σ²·ε_v/(c·resolution)² is the same for all."""
    sensitivity = Unit(release.unit, release.max_per_user).sensitivity
    kind = "gaussian" if release.delta > 0 else "laplace"
    relative = []
    for answer in release.answers:
        if answer.mechanism != kind or answer.epsilon <= 0:
            raise ReleaseError(_WRONG_NOISE.format(answer.name))
        norm, share = answer.resolution * sensitivity, float(answer.epsilon)
        relative.append(answer.scale * share / norm if kind == "laplace" else (answer.scale / norm) ** 2 * share)
    expected = 1.0 if kind == "laplace" else relative[0]
    for answer, value in zip(release.answers, relative):
        if not math.isclose(value, expected, rel_tol=_TOLERANCE):
            raise ReleaseError(_WRONG_NOISE.format(answer.name))


def _fits(answer: Answer, grid: Grid) -> bool:
    known, shape = answer.parameters, answer.shape
    base = answer.name.partition("/")[0]
    if base in _FIELDS and "side" in known:
        side = known["side"]
        if not (type(side) is int and 1 <= side <= 1 << 20 and known.get("cell_m") == grid.cell_m):
            return False
        if shape != level_shape(grid, side):
            return False
    edges = [known[name] for name in _NEEDED.get(answer.name, ()) if name.endswith("edges") and name in known]
    if edges and not (all(_rising(one) for one in edges) and shape == tuple(len(one) - 1 for one in edges)):
        return False
    if base == "beat" and not _among(known["edges"], plan.beat_bins().edges):
        return False
    if base == "departure_hour":
        return shape == (24,)
    if base == "departure_week":
        return len(shape) == 2 and shape[0] == 7 and shape[1] in plan.WEEK_PARTS
    if answer.name == plan.HOURS and not (known.get("cuts") and len(shape) == 3 and shape[1] <= plan.MOST_REGIONS):
        return False
    if "cuts" in known:
        regions = len(known["cuts"]) + 1 if isinstance(known["cuts"], list) else 0
        expected = (2, regions, PARTS_OF_WEEK) if answer.name == plan.HOURS else (regions, regions)
        return shape == expected and _are_cuts(known["cuts"], grid)
    if "merged" in known:
        return known["merged"] == 4 and len(shape) == 2 and shape[0] == shape[1]
    return True


def _fits_detail(answer: Answer, release: Release, grid: Grid) -> bool:
    """Sides that divide each other, a value for each cell of both levels, and possible parts for each coarse block."""
    known, coarse = answer.parameters, answer.name.replace("detail", "coarse")
    whole = release[coarse].parameters.get("side") if coarse in release else None
    sides, parts = known.get("sides"), known.get("parts")
    if not (isinstance(sides, list) and len(sides) == 2 and known.get("cell_m") == grid.cell_m):
        return False
    middle, fine = sides
    if whole is None or not all(type(side) is int and 1 <= side <= 1 << 20 for side in (whole, middle, fine)):
        return False
    if whole % middle or middle % fine:
        return False
    if answer.shape != (sum(math.prod(level_shape(grid, side)) for side in (middle, fine)),):
        return False
    rows, columns = level_shape(grid, whole)
    return (
        isinstance(parts, list)
        and len(parts) == rows
        and all(isinstance(row, list) and len(row) == columns for row in parts)
        and all(type(part) is int and FEWEST <= part <= MOST for row in parts for part in row)
    )


def _rising(edges: Any) -> bool:
    return (
        isinstance(edges, list)
        and len(edges) >= 2
        and all(type(value) in (int, float) and abs(value) < 1e12 for value in edges)
        and all(a < b for a, b in pairwise(edges))
    )


def _are_cuts(cuts: Any, grid: Grid) -> bool:
    if not isinstance(cuts, list) or not 1 <= len(cuts) < 1 << 16 or (len(cuts) + 1) & len(cuts):
        return False
    for cut in cuts:
        if not (isinstance(cut, list) and len(cut) == 2 and cut[0] in ("x", "y") and type(cut[1]) is int):
            return False
        if not 0 <= cut[1] <= (grid.columns if cut[0] == "x" else grid.rows):
            return False
    return True
