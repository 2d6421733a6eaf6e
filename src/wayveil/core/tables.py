"""Trajectories as Arrow tables, with the columns of wayveil's files and frames."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.core.arrow import column_of
from wayveil.errors import InputError

if TYPE_CHECKING:
    from wayveil.core.trajectories import Trajectories

LARGEST_S = 1e11
"""Larger Unix times (beyond the year 5138) are read as milliseconds, then as micro-, then as nanoseconds."""
MAX_LABEL_BYTES = 256
"""Longer labels are refused by writers and left out by readers."""


def user_column(user: NDArray[np.generic]) -> pa.Array:
    """Users as int64 or text; other labels are refused, because a reader could not restore them."""
    import pyarrow.compute as pc

    values = np.asarray(user)
    if values.dtype == object:
        kinds = {type(value) for value in values}
        if kinds and kinds <= {str}:
            values = values.astype(np.str_)
        elif kinds and all(issubclass(kind, int | np.integer) and kind is not bool for kind in kinds):
            values = values.astype(np.int64)
    if values.dtype.kind in "iu" and not (values.dtype == np.uint64 and (values > np.uint64(2**63 - 1)).any()):
        return pa.array(values.astype(np.int64))
    if values.dtype.kind != "U":
        raise InputError("Users must be whole numbers or text to be written.")
    try:
        texts = pa.array(values.tolist(), pa.string())
    except UnicodeEncodeError:
        raise InputError("Some user labels contain characters that UTF-8 cannot encode.") from None
    if len(texts) and not pc.min(pc.binary_length(texts)).as_py() > 0:
        raise InputError("Some user labels are empty; fill them in before writing.")
    if len(texts) and pc.max(pc.binary_length(texts)).as_py() > MAX_LABEL_BYTES:
        raise InputError(f"Some user labels are longer than {MAX_LABEL_BYTES} bytes.")
    return texts


def whole_seconds(t_utc: NDArray[np.float64]) -> bool:
    """Whether every time is a whole second."""
    return bool((t_utc == np.floor(t_utc)).all())


def table_of(trajectories: "Trajectories", *, first_id: int = 0, whole: bool | None = None) -> pa.Table:
    """Columns traj_id, lat, lon, t and, if there are users, user_id; one row per point.

    `t` is int64 when every time is a whole second (or as `whole` says), float64 otherwise.
    """
    t_utc = trajectories.t_utc
    if not (np.isfinite(t_utc).all() and (np.abs(t_utc) <= LARGEST_S).all()):
        raise InputError("Some times are missing or beyond the year 5138; they cannot be written.")
    whole = whole_seconds(t_utc) if whole is None else whole
    owner = ragged.owners(np.diff(trajectories.offsets))
    columns: dict[str, Any] = {
        "traj_id": column_of(first_id + owner),
        "lat": column_of(trajectories.lat),
        "lon": column_of(trajectories.lon),
        "t": column_of(t_utc.astype(np.int64) if whole else t_utc),
    }
    if trajectories.user is not None:
        columns["user_id"] = user_column(trajectories.user).take(owner)
    return pa.table(columns)
