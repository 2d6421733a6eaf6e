"""The product's own estimator and network code, importable where only numpy and scipy are installed.

The training machine has no pydantic, pyproj or opendp, so the package's front door is bypassed: its folders are
registered as bare packages and only the modules of the field estimator are loaded.
"""

import sys
import types
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src" / "wayveil"


def _register() -> None:
    try:
        import wayveil.core.density  # noqa: F401
    except ImportError:
        for name, folder in (("wayveil", SOURCE), ("wayveil.synthesis", SOURCE / "synthesis")):
            package = types.ModuleType(name)
            package.__path__ = [str(folder)]
            sys.modules[name] = package


_register()

from wayveil.core.density import NoisyLevel, estimate_field  # noqa: E402
from wayveil.core.pyramid import pool, shifted, spread  # noqa: E402
from wayveil.questions.detail_weights import PARTS, coarse_parts, concentration, fine_parts, parts_of_cells  # noqa: E402
from wayveil.questions.value_weights import value_weights  # noqa: E402
from wayveil.synthesis.estimate.learned import features, network  # noqa: E402
from wayveil.synthesis.estimate.learned.refine import Observed, refine  # noqa: E402
from wayveil.synthesis.estimate.learned.weights import WEIGHTS_FILE  # noqa: E402
from wayveil.synthesis.estimate.mapped_density import estimate_mapped_field  # noqa: E402

__all__ = ["PARTS", "WEIGHTS_FILE", "NoisyLevel", "Observed", "coarse_parts", "concentration", "estimate_field",
           "estimate_mapped_field", "features", "fine_parts", "network", "parts_of_cells", "pool", "refine", "shifted",
           "spread", "value_weights"]  # fmt: skip

OCCUPANCY_SHARE = 0.390
"""Share of ε of the coarse blocks and of the detail inside them; a test compares it with the catalogue's."""
END_POINT_SHARE = 0.220
COUNT_SHARE = 0.010
FINER = 1.5
"""Factor on the signal with Gaussian noise; a test compares it with `wayveil.measurement.gaussian`."""
END_POINT_POWER = 1.5


def level_sides(cells: int, signal: float, concentrated: float = 16.0) -> tuple[int, int, int]:
    """Sides of the three levels in base cells; a test compares it with `wayveil.questions.field.field_levels`."""
    fine = 1
    while fine < 64 and max(concentrated, 16.0) * signal * fine * fine < 0.8 * cells:
        fine *= 2
    return (min(64, 16 * fine) if fine <= 16 else fine * 4, min(4 * fine, 256), fine)
