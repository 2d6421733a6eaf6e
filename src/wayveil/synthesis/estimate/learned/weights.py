"""The networks' weights: files in the package, checked against pinned digests and loaded when needed.

There is one network for Laplace noise and one for Gaussian noise, which was trained on the latter only.
"""

import hashlib
import io
from functools import cache
from pathlib import Path

import numpy as np

from wayveil.errors import WayveilError
from wayveil.synthesis.estimate.learned import features
from wayveil.synthesis.estimate.learned.network import Array, parameter_shapes

WEIGHTS_FILE = Path(__file__).with_name("weights.npz")
WEIGHTS_SHA256 = "4972323d9ad7259c9dfbc44b96c7614e63ab0e1aa40404a3ba12613ce3603808"
GAUSSIAN_FILE = Path(__file__).with_name("weights-gaussian.npz")
GAUSSIAN_SHA256 = "cc6233a1af6e482e1d09c6ac4575d9deafb082873852db6c74bbf005efbcc0e4"
INPUTS = {"occupancy": features.OCCUPANCY_INPUTS, "end_points": features.END_POINT_INPUTS}
GAUSSIAN_INPUTS = {
    "occupancy": features.GAUSSIAN_OCCUPANCY_INPUTS,
    "end_points": features.GAUSSIAN_END_POINT_INPUTS,
}


class WeightsError(WayveilError):
    """The learned estimator's weights are missing or are not the ones that were shipped."""


@cache
def load_weights(kind: str, gaussian: bool = False, path: Path | None = None) -> dict[str, Array]:
    """Arrays by name for 'occupancy' or 'end_points', as float32; from `path` instead of the shipped file if given."""
    try:
        content = (path or (GAUSSIAN_FILE if gaussian else WEIGHTS_FILE)).read_bytes()
    except OSError:
        raise WeightsError("The learned estimator's weights are missing; install the package again.") from None
    if hashlib.sha256(content).hexdigest() != (GAUSSIAN_SHA256 if gaussian else WEIGHTS_SHA256):
        raise WeightsError("The learned estimator's weights were altered; install the package again.")
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        names = parameter_shapes((GAUSSIAN_INPUTS if gaussian else INPUTS)[kind], features.CONSTANTS)
        return {name: file[f"{kind}/{name}"].astype(np.float32).reshape(shape) for name, shape in names.items()}
