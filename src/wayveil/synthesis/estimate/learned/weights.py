"""The network's weights: one file in the package, checked against a pinned digest and loaded when needed."""

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
INPUTS = {"occupancy": features.OCCUPANCY_INPUTS, "end_points": features.END_POINT_INPUTS}


class WeightsError(WayveilError):
    """The learned estimator's weights are missing or are not the ones that were shipped."""


@cache
def load_weights(kind: str, path: Path = WEIGHTS_FILE) -> dict[str, Array]:
    """Arrays by name for 'occupancy' or 'end_points', as float32."""
    try:
        content = path.read_bytes()
    except OSError:
        raise WeightsError("The learned estimator's weights are missing; install the package again.") from None
    if hashlib.sha256(content).hexdigest() != WEIGHTS_SHA256:
        raise WeightsError("The learned estimator's weights were altered; install the package again.")
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        names = parameter_shapes(INPUTS[kind], features.CONSTANTS)
        return {name: file[f"{kind}/{name}"].astype(np.float32).reshape(shape) for name, shape in names.items()}
