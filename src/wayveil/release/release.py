"""Release: noisy answers, what they cost, and what they promise."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from wayveil.core.grid import base_grid
from wayveil.core.html import box_text, card, density_svg, span_text
from wayveil.core.plots import new_axes, plot_density
from wayveil.core.scope import Scope
from wayveil.errors import ReleaseError
from wayveil.privacy.budget import decimal_text
from wayveil.questions.answer import Answer
from wayveil.questions.levels import noisy_levels
from wayveil.questions.occupancy import Occupancy, OccupancyDetail


@dataclass(frozen=True, eq=False)
class Release:
    """Noisy answers, their costs, and the promise in plain language.

    `wayveil.measure` returns it. It may be published; `wayveil.describe` states its promise as text.

    Examples
    --------
    >>> import wayveil
    >>> city = wayveil.simulate.simulate_city(size_km=(3, 3))
    >>> rides = wayveil.simulate.simulate_trajectories(city, 50)
    >>> release = wayveil.measure(rides, city.scope, epsilon=2, unit="trajectory")
    >>> release.epsilon, release.unit, "count" in release
    (Fraction(2, 1), 'trajectory', True)

    Privacy
    -------
    Free (its cost was paid when it was measured).
    """

    scope: Scope
    answers: tuple[Answer, ...]
    epsilon: Fraction
    delta: float
    unit: Literal["trajectory", "user"]
    max_per_user: int
    neighbours: str
    """The neighbouring relation in plain words."""
    private: bool
    """False if the noise came from a seeded generator; nothing made from such a release may be published."""
    software: str

    def __post_init__(self) -> None:
        names = [answer.name for answer in self.answers]
        if len(set(names)) != len(names):
            raise ReleaseError("Two answers of the release have the same name.")

    @property
    def ledger(self) -> tuple[tuple[str, Fraction], ...]:
        """(name, ε) of each answer; they add up to `epsilon`."""
        return tuple((answer.name, answer.epsilon) for answer in self.answers)

    def __getitem__(self, name: str) -> Answer:
        for answer in self.answers:
            if answer.name == name:
                return answer
        raise ReleaseError(f"The release has no answer to '{name}'; it was made by another version of wayveil.")

    def __contains__(self, name: str) -> bool:
        return any(answer.name == name for answer in self.answers)

    def __repr__(self) -> str:
        delta = f", delta={self.delta:g}" if self.delta else ""
        most = f", max_per_user={self.max_per_user}" if self.unit == "user" else ""
        promise = "differentially private" if self.private else "NOT private"
        return (
            f"Release('{self.scope.name}', epsilon={decimal_text(self.epsilon)}{delta}, unit='{self.unit}'{most}, "
            f"{len(self.answers)} noisy answers, {promise})"
        )

    def _repr_html_(self) -> str:
        scope = self.scope
        facts = [("scope", scope.name), ("epsilon", decimal_text(self.epsilon))]
        facts += [("delta", f"{self.delta:g}")] if self.delta else []
        facts += [("protects", self.unit if self.unit == "trajectory" else f"user, {self.max_per_user} trips at most")]
        facts += [("trajectories", f"about {max(self['count'].counts[0], 0):,.0f} (noisy)")] if "count" in self else []
        facts += [("noisy answers", f"{len(self.answers)}")]
        if scope.first_day is not None and scope.last_day is not None:
            facts += [("days", span_text(scope.first_day.isoformat(), scope.last_day.isoformat()))]
        facts += [("box", box_text(scope.south, scope.west, scope.north, scope.east))]
        notice = "" if self.private else "Not private: the noise came from a seed."
        return card("Release", facts, notice=notice, drawing=self._map())

    def plot(self, ax: Any = None) -> Any:
        """Draw the noisy density, empty where it is within its noise; returns the axes of matplotlib.

        Privacy: free (post-processing).
        """
        found = self._density()
        if found is None:
            return new_axes(ax)
        density, side = found
        grid, scope = base_grid(self.scope), self.scope
        rows, columns = density.shape
        extent = (columns * side * grid.cell_m, rows * side * grid.cell_m)
        # Blocks may reach beyond the box; degrees are linear in metres.
        east = scope.west + extent[0] / scope.width_m * ((scope.east - scope.west) % 360.0)
        north = scope.south + extent[1] / scope.height_m * (scope.north - scope.south)
        ax = plot_density(density, (scope.west, scope.south, east, north), ax)
        ax.set_title("Noisy density, where it is above the noise", fontsize="medium")
        return ax

    def _map(self) -> str:
        found = self._density()
        return "" if found is None else density_svg(found[0], label="Map of the noisy density")

    def _density(self) -> tuple[NDArray[np.float64], int] | None:
        """Noisy density in blocks, zero where a count is within its noise, and their side in base cells.

        None without answers about places.
        """
        names = [name for name in (Occupancy.name, OccupancyDetail.name) if name in self]
        levels = noisy_levels([self[name] for name in names])
        if not levels:
            return None
        level = levels[min(1, len(levels) - 1)]
        return np.where(level.counts > 2 * level.noise, level.counts, 0.0), level.side
