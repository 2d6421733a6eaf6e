"""Two files of weights of one shape → their mean: what a later stage learned, without losing what the earlier knew.

    python research/training/average.py BEFORE AFTER OUT [--share 0.5] [--only occupancy]

The fine-tuned network starts at the earlier one and stays near it, so that the networks between them work too.
"""

import argparse
from pathlib import Path

import numpy as np


def average(before: Path, after: Path, share: float, only: str = "") -> dict[str, np.ndarray]:
    """(1 − share) · before + share · after, in single precision, as float16; of one field's network if `only` it."""
    with np.load(before) as first, np.load(after) as second:
        if set(first.files) != set(second.files):
            raise SystemExit("The two files hold different arrays; average weights of one shape only.")
        shares = {name: share if name.startswith(only) else 0.0 for name in first.files}
        mixed = {name: (1 - w) * np.float32(first[name]) + w * np.float32(second[name]) for name, w in shares.items()}
    return {name: np.asarray(values, np.float16) for name, values in mixed.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--share", type=float, default=0.5, help="of the later weights")
    parser.add_argument("--only", default="", choices=("", "occupancy", "end_points"), help="the other stays as before")
    chosen = parser.parse_args()
    np.savez(chosen.out, **average(chosen.before, chosen.after, chosen.share, chosen.only))


if __name__ == "__main__":
    main()
