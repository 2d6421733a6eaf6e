"""Ray: the same two methods on the workers of a cluster, or of this machine.

Workers read their own partitions, prepare them and return integers. The sum of integers does not depend on the order,
so a partition that is read again after its worker died does not change the result. The caller draws noise once, after
all sums are added: nothing here spends privacy budget.
"""

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from wayveil.core.optional import import_optional
from wayveil.core.scope import Scope
from wayveil.engine.parts import Part, parts_of
from wayveil.engine.serial import Kept, part_batches
from wayveil.errors import InputError, WayveilError
from wayveil.io.source import Source
from wayveil.progress import Progress, quiet
from wayveil.questions.question import Query, exact_sums, size_of

Piece = TypeVar("Piece")
Result = TypeVar("Result")
Sums = list[NDArray[np.int64]]

RETRIES = 4
"""How often a task is started again after its worker died."""
_STARTS = 3
"""How often a local Ray is started: on a busy machine it may miss its own limit of 30 s."""
_AHEAD = 2
"""Tasks in flight per worker: enough that no worker waits, few enough that results do not accumulate."""


class RayEngine:
    """Workers read the partitions, and this process adds the integers that they return.

    Parameters
    ----------
    address
        Address of a running cluster ('auto', 'ray://host:10001'); None starts workers on this machine.
    workers
        Number of tasks that run at a time; None for the number of the cluster's cores.

    Privacy: not private (trusted side only). The workers see the data: they belong to the trusted side.
    """

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        self._ray = _import_ray()
        if workers is not None and workers < 1:
            raise InputError("The number of workers must be at least 1.")
        _connect(self._ray, address, workers)
        self._workers = workers or max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def sums(
        self, source: Source, scope: Scope, queries: Sequence[Query], kept: Kept, progress: Progress = quiet
    ) -> Sums:
        """Σ φ(T) over the source, for each query; equal to `Serial.sums`.

        Privacy: not private (trusted side only).
        """
        parts = parts_of(source, kept, self.map)
        totals = [np.zeros(size_of(query), np.int64) for query in queries]
        shared = self._ray.put((scope, list(queries)))
        for done, found in enumerate(self._run(_part_sums, parts, shared, ordered=False), 1):
            for total, part in zip(totals, found):
                total += part
            progress("reading", done / len(parts))
        return totals

    def map(self, function: Callable[[Piece], Result], pieces: Sequence[Piece]) -> Iterator[Result]:
        """function(piece) for each piece, results in order; objects that all pieces share are sent once."""
        shared, rest = _factored(pieces)
        return self._run(_Applied(function), rest, self._ray.put(shared), ordered=True)

    def _run(self, function: Callable[..., Any], pieces: Sequence[Any], shared: Any, *, ordered: bool) -> Iterator[Any]:
        """function(shared, piece) on workers, a bounded number at a time."""
        ray = self._ray
        task = ray.remote(max_retries=RETRIES, num_cpus=1)(_guarded)
        function_ref = ray.put(function)
        waiting = iter(enumerate(pieces))
        ready: dict[int, Any] = {}
        in_flight: dict[Any, int] = {}
        due, ahead = 0, _AHEAD * self._workers
        # After an error the tasks in flight finish on their own, or end with their driver. They are not cancelled,
        # because cancelling a task that is about to finish crashes Ray 2.60 and the driver.
        while True:
            # Results that wait for a slow first piece count as well, so that they do not accumulate.
            while len(in_flight) + len(ready) < ahead and (entry := next(waiting, None)) is not None:
                in_flight[task.remote(function_ref, shared, entry[1])] = entry[0]
            if not in_flight:
                return
            (one,), _ = ray.wait(list(in_flight), num_returns=1)
            ready[in_flight.pop(one)] = _fetched(ray, one)
            while ready and (not ordered or due in ready):
                yield ready.pop(due if ordered else next(iter(ready)))
                due += 1


class _Applied:
    """function(piece), where the shared part of the piece was sent separately."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def __call__(self, shared: Any, rest: Any) -> Any:
        return self.function(rest if shared is None else (*shared, *rest))


def _factored(pieces: Sequence[Any]) -> tuple[tuple[Any, ...] | None, list[Any]]:
    """The leading objects that all pieces (tuples) have in common, and the rest of each piece."""
    pieces = list(pieces)
    if not pieces or not all(type(piece) is tuple and len(piece) == len(pieces[0]) for piece in pieces):
        return None, pieces
    same = 0
    while same < len(pieces[0]) and all(piece[same] is pieces[0][same] for piece in pieces):
        same += 1
    return (pieces[0][:same], [piece[same:] for piece in pieces]) if same else (None, pieces)


def _part_sums(shared: tuple[Scope, list[Query]], part: Part) -> Sums:
    scope, queries = shared
    return exact_sums(queries, part_batches(part, scope))


def _guarded(function: Callable[..., Any], shared: Any, piece: Any) -> tuple[bool, Any]:
    """(True, result), or (False, error) for errors with a message for the user.

    Any other error would be sent as a traceback with values of the data; only its type is sent.
    """
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    try:
        return True, function(shared, piece)
    except WayveilError as error:
        return False, error
    except Exception as error:
        kind = type(error).__name__
        return False, InputError(f"A worker failed with {kind}; use engine='serial' to see why.")


def _fetched(ray: Any, reference: Any) -> Any:
    try:
        fine, value = ray.get(reference)
    except ray.exceptions.OutOfMemoryError:
        raise InputError("A worker ran out of memory; use fewer workers or more memory.") from None
    except (ray.exceptions.WorkerCrashedError, ray.exceptions.NodeDiedError, ray.exceptions.ObjectLostError):
        raise InputError(
            f"A worker was lost {RETRIES + 1} times in a row; check the cluster and start again."
        ) from None
    except ray.exceptions.RayError:
        raise InputError(
            "A worker could not start its task; every machine needs the same Python, wayveil and access to the data."
        ) from None
    if not fine:
        raise value
    return value


def _import_ray() -> Any:
    # No information about a run leaves the cluster: no usage statistics, no log lines of workers on this terminal.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    return import_optional("ray", "engine='ray'")


def _connect(ray: Any, address: str | None, workers: int | None) -> None:
    if ray.is_initialized():
        return
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR, "configure_logging": True}
    if address is None:
        options |= {"num_cpus": workers, "include_dashboard": False}
    for _ in range(_STARTS if address is None else 1):
        try:
            ray.init(address=address, ignore_reinit_error=True, **options)
        except Exception:  # Ray raises plain Exceptions too
            ray.shutdown()
        else:
            return
    if address is None:
        raise InputError("Ray did not start on this machine; the machine may be too busy, so try again later.")
    raise InputError("Cannot reach the Ray cluster; check address=, and that the cluster is running.")
