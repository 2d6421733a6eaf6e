"""synthesize, streamed: shards go to part files as they are drawn, and to one Parquet file at the end.

Memory holds one shard. A run that was interrupted continues where it stopped, and its file is the one that an
uninterrupted run would have written, because a shard depends on the model, its number and the seed alone.

Privacy: free (post-processing).
"""

import json
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wayveil.arrow import column_of, numbers_of
from wayveil.atomic import atomic_path, write_text
from wayveil.engine.pieces import Pieces
from wayveil.errors import InputError
from wayveil.output_lock import output_lock
from wayveil.outputs import check_output
from wayveil.progress import Progress, quiet
from wayveil.release import Release
from wayveil.roads import RoadMap
from wayveil.rules.rule import Rule
from wayveil.synthesis.run_key import run_key
from wayveil.synthesis.shard import Shard
from wayveil.synthesis.synthesize import (
    diagnostics_of,
    draw_shards,
    make_model,
    shard_sizes,
    wanted_count,
    wanted_seed,
)
from wayveil.trajectories import Trajectories

_ROW_GROUP_ROWS = 1 << 19
_ENCODED: dict[str, Any] = {
    "use_dictionary": ["traj_id"],
    "column_encoding": {"lat": "BYTE_STREAM_SPLIT", "lon": "BYTE_STREAM_SPLIT"},
}
"""Only ids are worth a dictionary; coordinates with their bytes apart are packed quicker, and a quarter smaller."""
_FACTS = b"wayveil-shard"
_RUN = "run.json"


@dataclass(frozen=True, eq=False)
class Streamed:
    """What is known about a file of synthetic trajectories.

    Privacy: free (post-processing); as private as the release that it was made from.
    """

    trajectories: int
    diagnostics: dict[str, Any]
    private: bool
    resumed_shards: int
    """How many shards an earlier, interrupted run had left."""


def synthesize_to_parquet(
    release: Release,
    path: str | os.PathLike[str],
    *,
    roads: RoadMap | None = None,
    rules: Sequence[Rule] = (),
    n: int | None = None,
    seed: int | None = None,
    estimator: str = "learned",
    engine: Pieces | None = None,
    extra_metadata: Mapping[str, str] | None = None,
    progress: Progress = quiet,
) -> Streamed:
    """`synthesize` to a Parquet file of any size: columns traj_id, lat, lon, t, as `wayveil.write` writes them.

    Finished shards wait in the folder `<path>.parts`. The same call after an interruption continues there; a call with
    other arguments starts anew. Without a seed one is drawn and kept in that folder until the file is complete. While
    it runs, another call with the same path is refused.

    Privacy: free (post-processing).
    """
    target = Path(path)
    check_output(target, force=True)
    count, seed = wanted_count(release, n), wanted_seed(seed)
    with output_lock(target):
        folder = target.with_name(target.name + ".parts")
        make: dict[str, Any] = {"roads": roads, "rules": rules, "estimator": estimator, "progress": progress}
        if len(shard_sizes(count)) == 1:  # nothing to continue from: no need of a part
            _clear(folder)
            seed = _chosen(seed)
            only = next(iter(draw_shards(make_model(release, seed=seed, **make), count, seed, engine, progress)))
            whole = _whole(only.trajectories)
            _write(_tables_of(only.trajectories, whole), target, whole, extra_metadata)
            return _done(folder, [only], release.private, 0)
        seed = _begin(folder, run_key(release, roads, rules, count, seed, estimator), seed)
        parts = [folder / f"shard-{k:06d}.parquet" for k in range(len(shard_sizes(count)))]
        done = next((k for k, part in enumerate(parts) if not part.exists()), len(parts))
        if done < len(parts):
            shards = draw_shards(make_model(release, seed=seed, **make), count, seed, engine, progress, first=done)
            for part, shard in zip(parts[done:], shards):
                _write_part(part, shard)
        facts = [_facts(part) for part in parts]
        _join(parts, target, [len(one.trajectories) for one in facts], extra_metadata, progress)
        return _done(folder, facts, release.private, done)


def _done(folder: Path, shards: Sequence[Any], private: bool, resumed: int) -> Streamed:
    shutil.rmtree(folder, ignore_errors=True)
    diagnostics = diagnostics_of(shards)
    return Streamed(diagnostics["trajectories"], diagnostics, private, resumed)


def _begin(folder: Path, key: str | None, seed: int | None) -> int:
    """The run's seed; what another run left in the folder is removed."""
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
    # A folder with shards but without this file is never trusted, so it is written first.
    write_text(folder / _RUN, json.dumps({"key": key, "seed": chosen}), private=True)
    return chosen


def _chosen(seed: int | None) -> int:
    """The seed, or one that is drawn; the same for the model and for every shard."""
    return secrets.randbits(63) if seed is None else seed


def _clear(folder: Path) -> None:
    """Remove what an earlier run left; never anything else."""
    try:
        if folder.exists():
            if any(not _ours(entry.name) for entry in folder.iterdir()):
                raise InputError(f"'{folder.name}' holds files that are not wayveil's; move them or choose another -o.")
            shutil.rmtree(folder)
    except OSError as error:
        raise _unusable(folder, error) from None


def _unusable(folder: Path, error: OSError) -> InputError:
    return InputError(f"Cannot use the folder '{folder.name}': {error.strerror}; choose another -o.")


def _ours(name: str) -> bool:
    return name == _RUN or name.startswith(("shard-", ".shard-", f".{_RUN}"))


@dataclass(frozen=True)
class _Facts:
    """A shard without its points; `trajectories` has only their number."""

    trajectories: range
    loss: dict[str, float]
    effective_sample_share: float
    realised_density_jsd: float
    violations_before: dict[str, dict[str, int]]
    violations_after: dict[str, dict[str, int]]
    changed: dict[str, int]
    avoided: tuple[str, ...]


def _write_part(path: Path, shard: Shard) -> None:
    import pyarrow.parquet as pq

    made = shard.trajectories
    facts = asdict(_Facts(range(0), shard.loss, shard.effective_sample_share, shard.realised_density_jsd,
                          shard.violations_before, shard.violations_after, shard.changed, shard.avoided))  # fmt: skip
    facts["trajectories"] = len(made)
    whole = _whole(made)
    schema = _schema(whole).with_metadata({_FACTS: json.dumps(facts).encode()})
    # It is read once and removed: quick to write matters more than small.
    with (
        atomic_path(path, private=False) as part,
        pq.ParquetWriter(part, schema, compression="lz4", **_ENCODED) as writer,
    ):
        for table in _tables_of(made, whole):
            writer.write_table(table, row_group_size=_ROW_GROUP_ROWS)


def _whole(made: Trajectories) -> bool:
    parts = (made.t_utc[first : first + _ROW_GROUP_ROWS] for first in range(0, len(made.t_utc), _ROW_GROUP_ROWS))
    return all(bool((part == np.floor(part)).all()) for part in parts)


def _schema(whole_seconds: bool) -> Any:
    import pyarrow as pa

    kinds = [("traj_id", pa.int64()), ("lat", pa.float64()), ("lon", pa.float64())]
    return pa.schema([*kinds, ("t", pa.int64() if whole_seconds else pa.float64())])


def _tables_of(made: Trajectories, whole_seconds: bool) -> Iterator[Any]:
    """The columns of one row group after the other."""
    import pyarrow as pa

    for first in range(0, len(made.lon), _ROW_GROUP_ROWS):
        rows = slice(first, min(first + _ROW_GROUP_ROWS, len(made.lon)))
        begin, end = np.searchsorted(made.offsets, [rows.start, rows.stop - 1], side="right") - 1
        edges = np.clip(made.offsets[begin : end + 2], rows.start, rows.stop)
        t_utc = made.t_utc[rows]
        columns = {
            "traj_id": column_of(np.repeat(np.arange(begin, end + 1), np.diff(edges))),
            "lat": column_of(made.lat[rows]),
            "lon": column_of(made.lon[rows]),
            "t": column_of(t_utc.astype(np.int64) if whole_seconds else t_utc),
        }
        yield pa.table(columns, schema=_schema(whole_seconds))


def _facts(path: Path) -> _Facts:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        facts = json.loads((pq.read_schema(path).metadata or {})[_FACTS])
        return _Facts(**{**facts, "trajectories": range(facts["trajectories"])})
    except (OSError, pa.ArrowException, ValueError, KeyError, TypeError):
        raise InputError(f"'{path.name}' is damaged; remove the folder '{path.parent.name}' and start again.") from None


def _join(
    parts: Sequence[Path],
    target: Path,
    sizes: Sequence[int],
    extra_metadata: Mapping[str, str] | None,
    progress: Progress,
) -> None:
    """One file from the parts, row group by row group, trajectories numbered throughout."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    whole = all(pa.types.is_integer(pq.read_schema(part).field("t").type) for part in parts)
    first = np.cumsum([0, *sizes])

    def groups() -> Iterator[Any]:
        for k, part in enumerate(parts):
            for table in _row_groups(part):
                numbered = column_of(numbers_of(table["traj_id"]) + int(first[k]))
                yield table.set_column(0, "traj_id", numbered)
            progress("writing", (k + 1) / len(parts))

    _write(groups(), target, whole, extra_metadata)


def _write(groups: Iterable[Any], target: Path, whole_seconds: bool, extra_metadata: Mapping[str, str] | None) -> None:
    import pyarrow.parquet as pq

    notes = {key.encode(): value.encode() for key, value in (extra_metadata or {}).items()}
    schema = _schema(whole_seconds).with_metadata(notes)
    with (
        atomic_path(target, private=False) as path,
        pq.ParquetWriter(path, schema, compression="zstd", **_ENCODED) as writer,
    ):
        for table in groups:
            # A cast imports much, and is needed only where some part has whole seconds and some other has not.
            same = table.schema.equals(schema)
            writer.write_table(table if same else table.cast(schema), row_group_size=_ROW_GROUP_ROWS)


def _row_groups(path: Path) -> Iterator[Any]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as parquet:
        for group in range(parquet.num_row_groups):
            yield parquet.read_row_group(group, use_threads=False)
