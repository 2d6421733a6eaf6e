"""Tell real from synthetic trips by their features."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.core.optional import import_optional
from wayveil.core.threads import one_thread
from wayveil.evaluation.trips.features import Features
from wayveil.evaluation.trips.result import TellingFeature
from wayveil.evaluation.trips.settings import SETTINGS

Floats = NDArray[np.float64]


def require_sklearn() -> None:
    """InputError with the command to install scikit-learn, if it is missing."""
    import_optional("sklearn.ensemble", "trips=True")


def area_under_curve(real: dict[str, Features], synthetic: dict[str, Features], seed: int = 0) -> float:
    """AUC of gradient boosting on single trips, by cross-validation: 0.5 = indistinguishable."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    a, b = _table(real), _table(synthetic)
    known = np.isfinite(a).any(0) & np.isfinite(b).any(0)
    table, label = np.concatenate([a[:, known], b[:, known]]), np.repeat([0, 1], [len(a), len(b)])
    model: Any = HistGradientBoostingClassifier(
        max_iter=100, learning_rate=0.1, max_leaf_nodes=15, max_features=0.7, early_stopping=False, random_state=seed
    )
    folds = StratifiedKFold(SETTINGS.folds, shuffle=True, random_state=seed)
    with one_thread():
        probability = cross_val_predict(model, table, label, cv=folds, method="predict_proba")[:, 1]
    return float(roc_auc_score(label, probability))


def _table(groups: dict[str, Features]) -> Floats:
    return np.column_stack([column for group in groups.values() for column in group.values()])


def feature_distances(real: Features, synthetic: Features) -> dict[str, float]:
    """Feature -> Kolmogorov–Smirnov distance; without features that fewer than 20 trips of a side have."""
    distances = {}
    for name in real:
        a, b = (side[np.isfinite(side)] for side in (real[name], synthetic[name]))
        if min(len(a), len(b)) >= SETTINGS.fewest:
            distances[name] = _largest_gap(a, b)
    return distances


def _largest_gap(one: Floats, other: Floats) -> float:
    """Largest difference of two empirical distribution functions."""
    one, other = np.sort(one), np.sort(other)
    at = np.concatenate([one, other])
    share = [np.searchsorted(side, at, side="right") / len(side) for side in (one, other)]
    return float(np.abs(share[0] - share[1]).max())


def telling_features(
    real: dict[str, Features], synthetic: dict[str, Features], floor: dict[str, Features]
) -> tuple[TellingFeature, ...]:
    """The features that differ most, each with its median in real and in synthetic trips.

    Of features with a high rank correlation, only the one that differs most is listed.
    """
    found: list[tuple[float, str, str]] = []
    for group in real:
        distances = feature_distances(real[group], synthetic[group])
        found += [(distance, group, name) for name, distance in distances.items()]
    listed: list[tuple[float, str, str]] = []
    for distance, group, name in sorted(found, reverse=True):
        if len(listed) == SETTINGS.telling:
            break
        if all(_agreement(synthetic[group][name], synthetic[g][n]) < SETTINGS.alike for _, g, n in listed):
            listed.append((distance, group, name))
    return tuple(
        TellingFeature(
            name=name,
            group=group,
            real_median=float(np.nanmedian(real[group][name])),
            synthetic_median=float(np.nanmedian(synthetic[group][name])),
            distance=distance,
            floor=feature_distances(real[group], floor[group]).get(name, distance),
        )
        for distance, group, name in listed
    )


def _agreement(one: Floats, other: Floats) -> float:
    """Absolute rank correlation over the trips that have both features."""
    both = np.isfinite(one) & np.isfinite(other)
    ranks = [np.argsort(np.argsort(column[both])).astype(float) for column in (one, other)]
    if both.sum() < SETTINGS.fewest or min(np.ptp(one[both]), np.ptp(other[both])) == 0:
        return 0.0
    return float(abs(np.corrcoef(ranks[0], ranks[1])[0, 1]))
