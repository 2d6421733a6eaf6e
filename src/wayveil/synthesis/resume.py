"""Streamed synthesis: shards are written to part files, which are joined to one Parquet file at the end.

Memory holds one shard. An interrupted run continues where it stopped and writes the same file as an uninterrupted run,
because a shard depends on the model, its number and the seed only.

Privacy: free (post-processing).
"""

import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from wayveil.core.arrow import column_of, numbers_of
from wayveil.core.tables import whole_seconds
from wayveil.engine.pieces import Pieces
from wayveil.errors import InputError
from wayveil.io.atomic import write_text
from wayveil.io.output_lock import output_lock
from wayveil.io.outputs import check_output
from wayveil.io.writers.parquet import tables_of, write_tables
from wayveil.progress import Progress, quiet
from wayveil.synthesis.model import make_model
from wayveil.synthesis.recipe import draw_shards
from wayveil.synthesis.request import Request
from wayveil.synthesis.run_key import run_key
from wayveil.synthesis.shard import Facts, Shard, diagnostics_of, shard_sizes

_FACTS = "wayveil-shard"
_RUN = "run.json"


@dataclass(frozen=True, eq=False)
class Streamed:
    """Diagnostics of a file of synthetic trajectories.

    Privacy: free (post-processing); as private as the release that it was made from.
    """

    trajectories: int
    diagnostics: dict[str, Any]
    private: bool
    resumed_shards: int
    """Number of shards reused from an earlier, interrupted run."""


def synthesize_to_parquet(
    request: Request,
    path: str | os.PathLike[str],
    *,
    engine: Pieces | None = None,
    extra_metadata: Mapping[str, str] | None = None,
    progress: Progress = quiet,
) -> Streamed:
    """`synthesize` to a Parquet file of any size: columns traj_id, lat, lon, t, as `wayveil.write` writes them.

    Finished shards are kept in the folder `<path>.parts`. The same call after an interruption continues from them; a
    call with other arguments starts again. Without `seed`, one is drawn and kept in that folder until the file is
    complete. During a run, another call with the same path is refused.

    Privacy: free (post-processing).
    """
    target = Path(path)
    check_output(target, force=True)
    sizes = shard_sizes(request.count)
    with output_lock(target):
        folder = target.with_name(target.name + ".parts")
        if len(sizes) == 1:  # a single shard needs no part file
            _clear(folder)
            request = replace(request, seed=_chosen(request.seed))
            model = make_model(request, progress)
            only = next(iter(draw_shards(model, request, engine, progress)))
            tables = tables_of(only.trajectories, whole=whole_seconds(only.trajectories.t_utc))
            write_tables(tables, target, extra_metadata or {}, private=False)
            return _done(folder, [only.facts], request.release.private, 0)
        request = replace(request, seed=_begin(folder, run_key(request), request.seed))
        parts = [folder / f"shard-{k:06d}.parquet" for k in range(len(sizes))]
        done = next((k for k, part in enumerate(parts) if not part.exists()), len(parts))
        if done < len(parts):
            model = make_model(request, progress)
            for part, shard in zip(parts[done:], draw_shards(model, request, engine, progress, first=done)):
                _write_part(part, shard)
        facts = [_facts(part) for part in parts]
        _join(parts, target, [one.trajectories for one in facts], extra_metadata, progress)
        return _done(folder, facts, request.release.private, done)


def _done(folder: Path, shards: Sequence[Facts], private: bool, resumed: int) -> Streamed:
    shutil.rmtree(folder, ignore_errors=True)
    diagnostics = diagnostics_of(shards)
    return Streamed(diagnostics["trajectories"], diagnostics, private, resumed)


def _begin(folder: Path, key: str | None, seed: int | None) -> int:
    """The run's seed; removes files of another run from the folder."""
    try:
        known = json.loads((folder / _RUN).read_text(encoding="utf-8"))
        same = key is not None and known["key"] == key and type(known["seed"]) is int and known["seed"] >= 0
    except (OSError, ValueError, KeyError, TypeError):
        known, same = {}, False
    if same:
        return int(known["seed"])
    _clear(folder)
    try:
        folder.mkdir()
    except OSError as error:
        raise _unusable(folder, error) from None
    chosen = _chosen(seed)
    # This file is written first, because a folder with shards but without it is not reused.
    write_text(folder / _RUN, json.dumps({"key": key, "seed": chosen}), private=True)
    return chosen


def _chosen(seed: int | None) -> int:
    """The given seed, or a random one; the same for the model and all shards."""
    return secrets.randbits(63) if seed is None else seed


def _clear(folder: Path) -> None:
    """Remove the files of an earlier run; never other files."""
    try:
        if folder.exists():
            if any(not _ours(entry.name) for entry in folder.iterdir()):
                raise InputError(f"'{folder.name}' has files of other programs; move them or choose another output.")
            shutil.rmtree(folder)
    except OSError as error:
        raise _unusable(folder, error) from None


def _unusable(folder: Path, error: OSError) -> InputError:
    return InputError(f"Cannot use the folder '{folder.name}': {error.strerror}; choose another output.")


def _ours(name: str) -> bool:
    return name == _RUN or name.startswith(("shard-", ".shard-", f".{_RUN}"))


def _write_part(path: Path, shard: Shard) -> None:
    trajectories = shard.trajectories
    tables = tables_of(trajectories, whole=whole_seconds(trajectories.t_utc))
    # A part is read once and removed, so writing speed matters more than size.
    write_tables(tables, path, {_FACTS: json.dumps(asdict(shard.facts))}, private=False, compression="lz4")


def _facts(path: Path) -> Facts:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        facts = json.loads((pq.read_schema(path).metadata or {})[_FACTS.encode()])
        return Facts(**{**facts, "avoided": tuple(facts["avoided"])})
    except (OSError, pa.ArrowException, ValueError, KeyError, TypeError):
        raise InputError(f"'{path.name}' is damaged; remove the folder '{path.parent.name}' and start again.") from None


def _join(
    parts: Sequence[Path],
    target: Path,
    sizes: Sequence[int],
    extra_metadata: Mapping[str, str] | None,
    progress: Progress,
) -> None:
    """Join the parts to one file, row group by row group, with consecutive trajectory numbers."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    whole = all(pa.types.is_integer(pq.read_schema(part).field("t").type) for part in parts)
    first = np.cumsum([0, *sizes])

    def tables() -> Iterator[Any]:
        for k, part in enumerate(parts):
            for table in _row_groups(part):
                numbered = table.set_column(0, "traj_id", column_of(numbers_of(table["traj_id"]) + int(first[k])))
                t_utc = numbers_of(table["t"])
                # Times may be whole seconds in some parts only.
                yield numbered if whole else numbered.set_column(3, "t", column_of(t_utc.astype(np.float64)))
            progress("writing", (k + 1) / len(parts))

    write_tables(tables(), target, extra_metadata or {}, private=False)


def _row_groups(path: Path) -> Iterator[Any]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as parquet:
        for group in range(parquet.num_row_groups):
            yield parquet.read_row_group(group, use_threads=False)
