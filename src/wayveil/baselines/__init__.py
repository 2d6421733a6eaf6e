"""AdaTrace and PrivTrace, implemented from their papers, for comparison.

Each has two modes: `published=True` follows the authors and is marked as not private; the default closes the leaks.
"""

from wayveil.baselines.adatrace import adatrace
from wayveil.baselines.privtrace import privtrace
from wayveil.baselines.result import BaselineResult, LedgerLine

__all__ = ["BaselineResult", "LedgerLine", "adatrace", "privtrace"]
