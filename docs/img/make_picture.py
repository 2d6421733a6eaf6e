"""The README's picture, from the folder of a demo: `wayveil demo && python docs/img/make_picture.py wayveil-demo`."""

import sys
from itertools import pairwise
from pathlib import Path

import matplotlib
import numpy as np
from PIL import Image

import wayveil
from wayveil.workflow.demo_files import Files

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.collections import LineCollection
from matplotlib.colors import LogNorm

CELL_M = 100.0
SHOWN = 60


def density(trajectories, scope):
    """Points a cell of 100 m."""
    x, y = scope.to_metres(trajectories.lon, trajectories.lat)
    edges = [np.arange(0, side + CELL_M, CELL_M) for side in (scope.height_m, scope.width_m)]
    return np.histogram2d(y, x, bins=edges)[0]


def lines(offsets, x, y):
    """One array of points a trajectory, in kilometres."""
    return [np.column_stack([x[a:b], y[a:b]]) / 1000 for a, b in pairwise(offsets)]


def main(folder: str = "wayveil-demo") -> None:
    """Draw the picture of the README from a finished demo."""
    files = Files(Path(folder))
    scope, roads = wayveil.read_scope(files.scope), wayveil.read_roads(files.roads)
    real, synthetic = wayveil.read(files.real), wayveil.read(files.synthetic)
    fields = [density(real, scope), density(synthetic, scope)]
    extent = (0, scope.width_m / 1000, 0, scope.height_m / 1000)
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.9), layout="constrained")
    norm = LogNorm(1, max(field.max() for field in fields))
    colours = plt.get_cmap("magma").copy()
    colours.set_bad("black")
    for axis, field, title in zip(axes, fields, ("real density", "synthetic density, ε = 1")):
        axis.imshow(np.where(field > 0, field, np.nan), origin="lower", extent=extent, norm=norm, cmap=colours)
        axis.set_title(title, fontsize=11)
    streets = LineCollection(lines(roads.offsets, *scope.to_metres(roads.lon, roads.lat)), colors="#a8a8a8", lw=0.35)
    axes[2].add_collection(streets)
    chosen = np.random.default_rng(3).choice(len(synthetic), SHOWN, replace=False)
    x, y = scope.to_metres(synthetic.lon, synthetic.lat)
    every = lines(synthetic.offsets, x, y)
    palette = plt.get_cmap("turbo")(np.linspace(0.05, 0.95, SHOWN))
    axes[2].add_collection(LineCollection([every[k] for k in chosen], colors=palette, lw=1.2, alpha=0.85))
    axes[2].set_xlim(extent[:2])
    axes[2].set_ylim(extent[2:])
    axes[2].set_title(f"{SHOWN} synthetic trips on the streets", fontsize=11)
    for axis in axes:
        axis.set_aspect("equal")
        axis.set_xticks([])
        axis.set_yticks([])
    target = Path(__file__).with_name("city.png")
    figure.savefig(target, dpi=110, bbox_inches="tight", pad_inches=0.05)
    Image.open(target).convert("RGB").quantize(192).save(target, optimize=True)


if __name__ == "__main__":
    main(*sys.argv[1:2])
