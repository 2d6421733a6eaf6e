"""What a baseline is: a description, shares of ε, and one function that makes trajectories from a `Run`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from wayveil.baselines.coordinates import Metres, from_points, in_metres, output_size
from wayveil.baselines.grid import Box
from wayveil.baselines.mechanism import Account, Features, Mechanism, published_mechanism, sound_mechanism
from wayveil.baselines.result import NO_TIME, ONE_DEVICE, ONE_TRAJECTORY, BaselineResult
from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories
from wayveil.privacy.budget import Number
from wayveil.privacy.ledger import Ledger
from wayveil.privacy.noise import NoiseSource
from wayveil.progress import Progress, quiet

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Run:
    """One call of a method: the data in metres, the mechanism that answers queries about it, and a random generator.

    Privacy: `data` and `t_utc` are not private (trusted side only); in the default mode, everything that reaches the
    output must come through `mechanism`.
    """

    box: Box
    data: Metres
    """(offsets, x_m, y_m)."""
    t_utc: Floats
    scope: Scope
    mechanism: Mechanism
    published: bool
    rng: np.random.Generator
    wanted: int | None
    devices: int = 0
    """The number of records, those outside the scope included: public in the local model, private otherwise."""
    progress: Progress = quiet
    remarks: list[str] = field(default_factory=list)
    """Sentences about this run for the result's notes; in the default mode they must not depend on `data`."""

    @property
    def trajectories(self) -> int:
        """The exact number. Privacy: not private (trusted side only)."""
        return len(self.data[0]) - 1

    def count(self) -> float:
        """The number of trajectories, at least 1: exact if published, otherwise through the share "count".

        Privacy: spends the share "count"; with `published`, not private.
        """
        m = self.trajectories
        if self.published:
            return max(float(m), 1.0)
        everyone = np.arange(m)
        return max(1.0, float(self.mechanism.sums("count", Features(everyone, everyone * 0, np.ones(m)), 1)[0]))

    def size(self, count: float) -> int:
        """How many trajectories to make. Privacy: free (post-processing)."""
        return output_size(self.wanted, count)

    def made(self, offsets: Ints, x_m: Floats, y_m: Floats, t_utc: Floats | None = None) -> Trajectories:
        """The output from points in metres; without times, t counts the points. Privacy: free (post-processing)."""
        return from_points(offsets, x_m, y_m, self.scope, t_utc)


@dataclass(frozen=True)
class Method:
    """A method of the collection, which is called like a function.

    Examples
    --------
    >>> from wayveil.baselines import load
    >>> adatrace = load("adatrace")
    >>> adatrace.name, adatrace.makes_times
    ('adatrace', False)
    """

    name: str
    reference: str
    """Authors, venue and year."""
    idea: str
    """One sentence."""
    protects: str
    """The unit that ε protects in the default mode."""
    proof: str
    """Why ε holds in the default mode, in one sentence."""
    leaks: str
    """What the published mode reveals; the sentence begins with "Not private"."""
    shares: Mapping[str, Number]
    """Weights of the parts of ε in the default mode; the method must use every part."""
    published_shares: Mapping[str, Number]
    make: Callable[[Run], Trajectories]
    makes_times: bool = False
    obeys_rules: str = "no"
    needs_map: bool = False
    local: bool = False
    """True in the local model: the number of devices is public, and ε is about replacing one device's data."""

    def __call__(
        self,
        trajectories: Trajectories,
        scope: Scope,
        epsilon: Number,
        *,
        published: bool = False,
        seed: int | None = None,
        n: int | None = None,
        noise: NoiseSource | None = None,
        ledger: Ledger | None = None,
        dataset: str | None = None,
        progress: Progress = quiet,
    ) -> BaselineResult:
        """Synthetic trajectories.

        Parameters
        ----------
        published
            True follows the authors and is not private (see `leaks`). False uses the scope's box, a noisy
            count and integer noise; nothing else from the data reaches the output.
        seed
            Seed of the drawing and, in the published mode, of the noise. The noise of the default mode has no seed.
        n
            Number of trajectories to make; None = the (noisy) count.
        noise
            Source of the default mode's noise; anything but the default makes the result not private.
        ledger, dataset
            The account that is charged. Without a ledger nothing is recorded, and the caller is responsible for
            composition.

        Privacy: spends `epsilon` for what `protects` says; with `published`, not private.
        """
        rng = np.random.default_rng(seed)
        output_size(n, 1.0)
        account = Account(noise, ledger, dataset)
        mechanism: Mechanism
        if published:
            mechanism = published_mechanism(epsilon, self.published_shares, rng, account)
        else:
            mechanism = sound_mechanism(self.name, epsilon, self.shares, account, rng)
        progress(self.name, 0.0)
        box, data, t_utc = in_metres(trajectories, scope, published)
        run = Run(box, data, t_utc, scope, mechanism, published, rng, n, len(trajectories), progress)
        made = self.make(run)
        progress(self.name, 1.0)
        kept = ONE_DEVICE if self.local else ONE_TRAJECTORY
        notes = [self.leaks if published else kept]
        notes += [] if self.makes_times else [NO_TIME]
        return BaselineResult(made, mechanism.private, tuple(mechanism.lines), (*notes, *run.remarks))
