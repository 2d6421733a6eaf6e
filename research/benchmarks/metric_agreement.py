"""Whether our metrics agree with an independent implementation.

usage: metric_agreement.py REFERENCE_METRICS.py DATA_DIR

The reference module has `evaluate(real, synthetic, box) -> {metric: value}` on dictionaries of lat, lon, t and starts.
The synthetic side is a shifted and jittered part of the data, so that no metric is 0. Allowed: 1e-3, relation 3e-3.
"""

import importlib.util
import sys
import time
from pathlib import Path

import numpy as np

from wayveil.core.trajectories import Trajectories, select
from wayveil.evaluation import evaluate, headline
from wayveil.io.files import read
from wayveil.io.scope_files import read_scope

SCOPES = {"cabspotting": "san-francisco", "geolife": "beijing", "tdrive_partial": "beijing"}


def main(reference_file: str, folder: str) -> int:
    spec = importlib.util.spec_from_file_location("reference_metrics", reference_file)
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)
    worst_of_all = 0.0
    for name, scope_name in SCOPES.items():
        scope, real = read_scope(scope_name), read(Path(folder) / f"{name}.parquet")
        rng = np.random.default_rng(1)
        part = select(real, rng.permutation(len(real))[: len(real) * 3 // 4])
        shift = rng.normal(0, 0.002, (2, len(part.lon)))
        synthetic = Trajectories(part.offsets, part.lon + shift[0], part.lat + shift[1], part.t_utc + 7200)
        begin = time.process_time()
        ours = evaluate(real, synthetic, scope).values
        all_s, begin = time.process_time() - begin, time.process_time()
        headline(real, synthetic, scope)
        headline_s = time.process_time() - begin
        plain = [{"lat": d.lat, "lon": d.lon, "t": d.t_utc, "starts": d.offsets} for d in (real, synthetic)]
        theirs = reference.evaluate(*plain, (scope.south, scope.west, scope.north, scope.east))
        shared = [metric for metric in theirs if metric in ours]
        gap = {m: abs(ours[m] - theirs[m]) / (3e-3 if m == "relation" else 1e-3) for m in shared}
        worst = max(gap, key=gap.__getitem__)
        worst_of_all = max(worst_of_all, gap[worst])
        print(f"{name}: {len(shared)} metrics, worst {worst} at {gap[worst]:.1e} of what is allowed; "
              f"all {len(ours)} metrics {all_s:.1f} CPU s, headline {headline_s:.1f} CPU s", flush=True)  # fmt: skip
    return int(worst_of_all > 1)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
