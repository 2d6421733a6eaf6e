"""Rule: the base class of all traffic rules, with the hooks that synthesis calls."""

from __future__ import annotations

import abc

import numpy as np
from numpy.typing import NDArray

from wayveil.core.polylines import Polylines
from wayveil.rules.area import Area
from wayveil.rules.hours import Hours
from wayveil.rules.motion import Array, Motion
from wayveil.rules.route_metres import metres_inside, metres_outside


class Rule(abc.ABC):
    """A traffic rule: a smooth penalty, an exact count of violations, and hooks that say how to obey it.

    A subclass must implement `penalty` and `violations`. That is enough: synthesis then moves points by gradient
    descent on the penalty, and replaces trajectories that still break the rule. Every other method is an optional hook.
    Its default does nothing, and synthesis calls it without knowing the class:

    ==============  ============================================================================================
    routes          `binds_routes`, `closed_area`, `stay_area`, `metres_against` (m), `cost_factor`
    departures      `closed_hours`, `timed_points`
    times           `new_times_suffice`, `least_step_s` (s), `longest_duration_s` (s)
    points          `legal_positions` (m), `about_steps`, `time_factor`, `prepare`, `place_penalty`
    checks          `stricter`, `reads_positions_only`
    ==============  ============================================================================================

    Positions are metres east and north of the scope's south-west corner. Rules are public, so no hook may look at
    private data. Make a subclass a frozen dataclass and do not subclass the built-in rules.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from wayveil.rules import Motion, Rule, module_of, motion_from_metres
    >>> from wayveil import read_scope
    >>> @dataclass(frozen=True)
    ... class NorthOf(Rule):
    ...     y_m: float
    ...     name: str = "north of a line"
    ...
    ...     def penalty(self, motion: Motion):
    ...         return module_of(motion).maximum(self.y_m - motion.y_m, 0.0)
    ...
    ...     def violations(self, motion: Motion):
    ...         return motion.y_m < self.y_m
    >>> motion = motion_from_metres([0.0, 0.0], [90.0, 120.0], [0.0, 60.0], [0, 2], read_scope("demo-city"))
    >>> NorthOf(100.0).penalty(motion).tolist()
    [10.0, 0.0]
    """

    name: str = "rule"
    """The name in summaries and pictures."""

    # What every rule has --------------------------------------------------------------------------------------------

    def describe(self) -> str:
        """Return the rule in one sentence of plain English."""
        return f"A rule that is defined in Python ({type(self).__name__})."

    @abc.abstractmethod
    def penalty(self, motion: Motion) -> Array:
        """Return how far each point is from obeying the rule: (n,), at least 0, continuous, in metres or seconds.

        It must work with numpy and with jax arrays: use the functions of `module_of(motion)`. Include a margin of a few
        centimetres or more, because written files round to 1e-7 degrees (about 1 cm). A value that concerns a step
        belongs to its later point, and one that concerns a trajectory to its last point.
        """

    @abc.abstractmethod
    def violations(self, motion: Motion) -> np.ndarray:
        """Return for each point whether it breaks the rule: (n,) bool, exact, without a margin; numpy only."""

    # Routes ---------------------------------------------------------------------------------------------------------

    def binds_routes(self) -> bool:
        """Return whether only another route can avoid a violation.

        Routes then avoid what `metres_against` counts, densities are set to zero in forbidden places, and candidate
        trips that break the rule are not used.
        """
        return False

    def closed_area(self) -> Area | None:
        """Return the area that nobody may enter (during `closed_hours`); None if there is none."""
        return None

    def stay_area(self) -> Area | None:
        """Return the area that nobody may leave; None if there is none."""
        return None

    def metres_against(self, lines: Polylines) -> NDArray[np.float64]:
        """Return how many metres of each line break the rule, at whatever hour: (lines,), in metres.

        The default counts metres inside `closed_area` and outside `stay_area`.
        """
        metres = np.zeros(len(lines))
        closed, stay = self.closed_area(), self.stay_area()
        if closed is not None:
            metres += metres_inside(lines, closed)
        if stay is not None:
            metres += metres_outside(lines, stay)
        return metres

    def cost_factor(self, lines: Polylines) -> NDArray[np.float64] | float:
        """Return the factor by which each edge of the route graph becomes more expensive: (lines,), at least 1.

        Use it for places that should be avoided but are not forbidden. It applies whether or not the rule binds routes.
        """
        return 1.0

    # Departures -----------------------------------------------------------------------------------------------------

    def closed_hours(self) -> Hours | None:
        """Return the hours of the week in which the rule holds; None if it holds at all times.

        A trip with one of its `timed_points` in these hours gets another departure.
        """
        return None

    def timed_points(self, lines: Polylines) -> NDArray[np.bool_]:
        """Return for each point whether it breaks the rule during `closed_hours`: (n,) bool.

        The default is every point inside `closed_area`.
        """
        area = self.closed_area()
        return np.zeros(len(lines.x_m), bool) if area is None else area.inside(lines.x_m, lines.y_m)

    # Times ----------------------------------------------------------------------------------------------------------

    def new_times_suffice(self) -> bool:
        """Return whether new times alone remove every violation, so that no point has to move for this rule."""
        return False

    def least_step_s(self, motion: Motion) -> NDArray[np.float64] | float:
        """Return the least time that the step to each point must take: (n,) seconds, 0 where any time is allowed.

        It must not depend on the times in `motion`: they are about to change.
        """
        return 0.0

    def longest_duration_s(self, length_m: NDArray[np.float64]) -> NDArray[np.float64] | float:
        """Return the longest time that trajectories of these lengths (m) may take: (trajectories,) seconds."""
        return np.inf

    # Points ---------------------------------------------------------------------------------------------------------

    def legal_positions(self, motion: Motion) -> tuple[np.ndarray, np.ndarray]:
        """Return positions (x, y in metres) with each violating point moved to the nearest legal place.

        It is called for trajectories that still violate the rule after gradient descent. Points in a `closed_area` or
        outside a `stay_area` need no hook: they are moved to the nearest place that all areas allow. The default
        returns the arrays of `motion` themselves, which means that nothing moves.
        """
        return motion.x_m, motion.y_m

    def about_steps(self) -> bool:
        """Return whether a violation concerns the step that ends at the point, so that both ends may move."""
        return False

    def time_factor(self, week_s: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Return the factor of the penalty that depends on the time of the week alone: (n,) from 0 to 1, or None.

        Gradient descent moves points and not times, so that it computes this factor once, in double precision.
        """
        return None

    def prepare(self, motion: Motion) -> tuple[np.ndarray, ...]:
        """Return arrays that `place_penalty` needs and that stay valid while points move by a few metres.

        It is called with numpy arrays once in a round of gradient descent. Their shapes must depend on the number of
        points alone, so that the descent is compiled once.
        """
        return ()

    def place_penalty(self, motion: Motion, prepared: tuple[Array, ...]) -> Array:
        """Return the penalty without its `time_factor`: (n,), for jax; `prepared` is what `prepare` returned."""
        return self.penalty(motion)

    # Checks ---------------------------------------------------------------------------------------------------------

    def stricter(self) -> Rule:
        """Return the rule with enough margin that it also holds if lengths are measured on the WGS 84 ellipsoid."""
        return self

    def reads_positions_only(self) -> bool:
        """Return whether `violations` reads `x_m` and `y_m` and nothing else, so that no clock has to be computed."""
        return False
