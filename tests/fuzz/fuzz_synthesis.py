"""Altered releases that are still releases: what is made of them is finite and inside the scope, or refused."""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
from fuzz_files import Kind, good_release, odd_value

from wayveil.release import read_release
from wayveil.workflow.synthesize import synthesize


def altered_release(rng: random.Random) -> bytes:
    """Whole numbers of the answers replaced: by chance values, far too large ones, all the same, all negative."""
    document = json.loads(json.dumps(good_release()))
    lists = list(_number_lists(document))
    for _ in range(rng.randint(1, 3)):
        values, kind = rng.choice(lists), rng.randrange(6)
        for at in range(len(values)) if kind < 4 else [rng.randrange(len(values))]:
            values[at] = [
                values[at] * 10**6, -abs(values[at]) - 5, 0, rng.randint(-(10**12), 10**12),
                odd_value(rng, values[at]), 2**62,
            ][kind]  # fmt: skip
    return json.dumps(document).encode()


def _number_lists(value: Any) -> Any:
    if isinstance(value, list) and value and all(type(one) in (int, float) for one in value):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _number_lists(one)


def use_synthesis(path: Path) -> None:
    release = read_release(path)
    for estimator in ("bayes", "learned"):
        made = synthesize(release, n=40, seed=1, estimator=estimator).trajectories
        assert len(made) == 40
        x_m, y_m = release.scope.to_metres(made.lon, made.lat)
        assert np.isfinite(made.t_utc).all() and (x_m > -0.01).all() and (x_m < release.scope.width_m + 0.01).all()
        assert (y_m > -0.01).all() and (y_m < release.scope.height_m + 0.01).all()


KINDS = {
    "synthesis": Kind("s.release.json", lambda: json.dumps(good_release()).encode(), altered_release, use_synthesis, 30)
}
