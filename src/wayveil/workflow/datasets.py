"""Open datasets on the ledger."""

import os
from typing import Any

from wayveil.io.options import read_options
from wayveil.io.source import measured_source
from wayveil.privacy.accounts import Dataset
from wayveil.privacy.budget import Number, exact_delta, exact_epsilon
from wayveil.privacy.digest import digest_of
from wayveil.privacy.ledger import Ledger, clean_name, kind_of
from wayveil.privacy.unit import Unit
from wayveil.progress import Progress, quiet


def open_dataset(
    data: Any,
    dataset: str,
    total: Number,
    *,
    unit: Unit | str,
    total_delta: Number = 0,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    progress: Progress = quiet,
    **columns: Any,
) -> Dataset:
    """Open a dataset on the ledger and set how much privacy may ever be spent on it.

    The ledger stores a keyed digest of the content, so that the same data under another name is detected. `measure`
    opens a dataset automatically, with its epsilon as the total.

    Parameters
    ----------
    data
        The private trajectories, as `wayveil.read` takes them; `columns` are its options.
    dataset
        The name under which all spending on this data is recorded.
    total, total_delta
        The epsilon and delta that each trajectory, or each user, may ever lose.
    unit
        Whose total this is: "trajectory" or "user".
    ledger
        A `Ledger` or its file; by default in your data folder.

    Examples
    --------
    >>> import wayveil
    >>> wayveil.open_dataset("rides.csv", "rides", 2, unit="trajectory")  # doctest: +SKIP

    Privacy
    -------
    Spends nothing; the digest stays in the ledger (trusted side only).
    """
    kind, name = kind_of(unit), clean_name(dataset)
    epsilon, delta = exact_epsilon(total, "total"), exact_delta(total_delta)
    source = measured_source(data, "trajectory", read_options(columns, "open_dataset"))
    account = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
    digest = digest_of(source.batches(progress), account.secret)
    return account.open_dataset(name, epsilon, digest, unit=kind, total_delta=delta)
