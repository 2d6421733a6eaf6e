"""Train the denoiser on simulated cities: generation on the CPU cores, training on the accelerator, at the same time.

    python3 train.py --out OUT --minutes 8 --workers 15          (one GPU)
    python3 train.py --out OUT --smoke                           (any CPU, about a minute)
    python3 train.py --out OUT --start FILE --roaming --lesson scales --side 384 --batch 16    (the fourth stage)

Writes weights.npz (float16), validation.json and log.jsonl; of several networks the others as weights-1.npz and so on.
"""

import argparse
import json
import math
import multiprocessing
import os
import queue
import sys
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from product import network
from samples import FIELDS, SIDE, random_samples, validation_samples
from streets import KINDS


def _make_validation(tasks, results, side: int) -> None:
    """Worker: validation cities until there are none left."""
    while True:
        try:
            kind, number = tasks.get(timeout=1.0)
        except queue.Empty:
            return
        for epsilon, mapped, fields, constants in validation_samples(kind, number, side):
            results.put((kind, number, epsilon, mapped, fields, constants))


def _work(seed: int, side: int, roaming: bool, tasks, validation, samples) -> None:
    _make_validation(tasks, validation, side)
    for fields, constants in random_samples(seed, side, roaming):
        rows, columns = np.argwhere(fields[..., FIELDS.index("area")] > 0).max(axis=0) + 1
        samples.put((fields[:rows, :columns].copy(), constants))  # without its padding: less to send


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=8.0, help="wall-clock minutes from start to the last step")
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) - 1))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batch", type=int, default=24)
    parser.add_argument("--side", type=int, default=SIDE)
    parser.add_argument("--pool", type=int, default=20_000, help="samples kept on the accelerator")
    parser.add_argument("--first", type=int, default=600, help="samples to wait for before the first step")
    parser.add_argument("--most-steps", type=int, default=10**9)
    parser.add_argument("--validation-cities", type=int, default=2, help="of each kind")
    parser.add_argument("--rate", type=float, default=1.2e-3, help="peak learning rate")
    parser.add_argument("--network", action="append", type=_shape, metavar="PATCH:CHANNELS",
                        help="a network's shape, such as 2:48,64,96,96; several share the samples")  # fmt: skip
    parser.add_argument("--start", type=Path, help="weights to go on from instead of random ones")
    parser.add_argument("--lesson", action="append", help="a loss by its name in lessons.py; a network for each")
    parser.add_argument("--roaming", action="store_true", help="scopes that need not have the city in their middle")
    parser.add_argument("--keep", type=Path, help="folder for the samples, for a later run")
    parser.add_argument("--kept", type=Path, help="folder of samples that an earlier run kept")
    parser.add_argument("--smoke", action="store_true", help="tiny, for a CPU: shows that everything runs")
    chosen = parser.parse_args()
    chosen.network = chosen.network or [(network.PATCH, network.CHANNELS)]
    if chosen.smoke:
        chosen.workers, chosen.batch, chosen.side, chosen.pool = 1, 2, 64, 16
        chosen.network = [(2, (6, 8))]  # narrow: compiling the real one takes a minute on a CPU
        chosen.first, chosen.most_steps, chosen.validation_cities, chosen.minutes = 8, 4, 1, 10.0
    chosen.lesson = chosen.lesson or ["cells"]
    longest = max(len(chosen.network), len(chosen.lesson))  # a network for each lesson, or one lesson for all
    chosen.network, chosen.lesson = ((part * longest)[:longest] for part in (chosen.network, chosen.lesson))
    return chosen


def _shape(text: str) -> tuple[int, tuple[int, ...]]:
    patch, channels = text.split(":")
    return int(patch), tuple(int(width) for width in channels.split(","))


def main() -> None:
    chosen = arguments()
    chosen.out.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    fork = multiprocessing.get_context("spawn")
    tasks, validation, samples = fork.Queue(), fork.Queue(), fork.Queue(maxsize=2048 if not chosen.smoke else 64)
    kinds = KINDS if not chosen.smoke else KINDS[-1:]
    for number in range(chosen.validation_cities):
        for kind in kinds:
            tasks.put((kind, number))
    workers = [
        fork.Process(
            target=_work,
            daemon=True,
            args=(1000 * chosen.seed + k, chosen.side, chosen.roaming, tasks, validation, samples),
        )
        for k in range(chosen.workers)
    ]
    for worker in workers:
        worker.start()
    try:
        _train(chosen, start, validation, samples, len(kinds))
    finally:
        for worker in workers:
            worker.terminate()


def _train(chosen: argparse.Namespace, start: float, validation, samples, kinds: int) -> None:
    import jax
    import jax.numpy as jnp
    from denoiser import initial_state, put, train_steps
    from lessons import LESSONS
    from validate import summarise, validate

    log = (chosen.out / "log.jsonl").open("w")

    def say(**line) -> None:
        text = json.dumps({"seconds": round(time.monotonic() - start, 1), **line})
        print(text, flush=True)
        log.write(text + "\n")
        log.flush()

    say(python=sys.version.split()[0], jax=jax.__version__, numpy=np.__version__, device=str(jax.devices()[0]),
        seed=chosen.seed, start=str(chosen.start), peak_rate=chosen.rate, batch=chosen.batch,
        side=chosen.side, workers=chosen.workers, networks=chosen.network, lessons=chosen.lesson,
        roaming=chosen.roaming)  # fmt: skip
    held_out, chunk = [], 8
    pool = (
        jnp.zeros((chosen.pool, chosen.side, chosen.side, len(FIELDS)), jnp.float16),
        jnp.zeros((chosen.pool, 12), jnp.float32),
    )
    begun = _read_weights(chosen.start) if chosen.start else None
    states = [initial_state(chosen.seed, shape, begun) for shape in chosen.network]
    lessons = [LESSONS[name] for name in chosen.lesson]
    steppers = _compiled(train_steps, states, lessons, pool, chosen.batch, 10 if not chosen.smoke else 2)
    waiting, made, steps = [], 0, 0
    if chosen.kept:
        for part in _chunks(chosen.kept, chunk):
            pool = put(pool, *part, made)
            made += chunk
        say(event="samples of an earlier run", samples=made)
    expected = kinds * chosen.validation_cities * 6
    deadline = 60 * chosen.minutes
    burst = 10 if not chosen.smoke else 2
    training_began, rate, values, said = None, 0.0, [math.nan], 0.0

    while True:
        _drain(validation, held_out)
        _drain(samples, waiting, most=64)
        while len(waiting) >= chunk:
            part, waiting = waiting[:chunk], waiting[chunk:]
            at = made % (chosen.pool - chosen.pool % chunk)
            pool = put(pool, _padded([s[0] for s in part], chosen.side), np.stack([s[1] for s in part]), at)
            made += chunk
        elapsed = time.monotonic() - start
        if made < chosen.first and elapsed < deadline:
            time.sleep(0.05)
            continue
        if training_began is None:
            training_began = elapsed
            say(event="first step", samples=made)
        done = max((elapsed - training_began) / max(deadline - training_began, 1e-9), steps / chosen.most_steps)
        if done >= 1:
            break
        rate = chosen.rate * min(1.0, (steps + 1) / 300) * 0.5 * (1 + math.cos(math.pi * done))
        filled, now = np.int32(min(made, chosen.pool)), np.float32(rate)
        results = [step(state, pool, filled, now) for step, state in zip(steppers, states)]
        states, values = zip(*results)
        values[-1].block_until_ready()
        steps += burst
        if elapsed - said > 10:
            say(step=steps, loss=[round(float(v), 4) for v in values], rate=round(rate, 6), samples=made)
            said = elapsed
    say(event="trained", steps=steps, samples=made, loss=[round(float(v), 4) for v in values])
    while len(held_out) < expected and time.monotonic() - start < deadline + 20:
        _drain(validation, held_out)
        time.sleep(0.05)
    averages = [jax.tree.map(lambda a: np.asarray(a, np.float16), state[1]) for state in states]
    names = [""] + [f"-{number}" for number in range(1, len(averages))]
    for name, weights in zip(names, averages):
        flat = {f"{kind}/{key}": value for kind, part in weights.items() for key, value in part.items()}
        np.savez(chosen.out / f"weights{name}.npz", **flat)
    if chosen.keep:
        chosen.keep.mkdir(parents=True, exist_ok=True)
        for name, values in zip(("fields", "constants"), pool):
            _save(chosen.keep / f"{name}.npy", values, min(made, chosen.pool))
    for name, weights in zip(names, averages):
        rows = validate(weights, held_out)
        (chosen.out / f"validation{name}.json").write_text(json.dumps(rows))
        print(summarise(rows), flush=True)
    say(event="validated", samples=len(held_out))


def _compiled(train_steps, states, lessons, pool, batch: int, burst: int) -> list:
    """One compiled step a network, one after the other: at the same time they disturb each other's timing."""
    return [
        train_steps.lower(state, pool, np.int32(1), np.float32(0), batch, burst, lesson).compile()
        for state, lesson in zip(states, lessons)
    ]


def _padded(parts: list[np.ndarray], side: int) -> np.ndarray:
    whole = np.zeros((len(parts), side, side, len(FIELDS)), np.float16)
    for place, part in zip(whole, parts):
        place[: part.shape[0], : part.shape[1]] = part
    return whole


def _save(path: Path, values, filled: int, part: int = 256) -> None:
    """The first samples of the pool, a part at a time: they need not fit into the accelerator twice."""
    file = np.lib.format.open_memmap(path, "w+", np.dtype(values.dtype), (filled, *values.shape[1:]))
    for start in range(0, filled, part):
        file[start : start + part] = np.asarray(values[start : min(start + part, filled)])
    file.flush()


def _chunks(folder: Path, size: int):
    """(fields, constants) of kept samples, `size` at a time."""
    kept = [np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("fields", "constants")]
    for start in range(0, len(kept[0]) - size + 1, size):
        yield tuple(np.array(values[start : start + size]) for values in kept)


def _read_weights(path: Path) -> dict:
    import jax.numpy as jnp

    weights = {}
    with np.load(path) as file:
        for name in file.files:
            kind, rest = name.split("/", 1)
            weights.setdefault(kind, {})[rest] = jnp.asarray(file[name], jnp.float32)
    return weights


def _drain(source, into: list, most: int = 10**6) -> None:
    for _ in range(most):
        try:
            into.append(source.get_nowait())
        except queue.Empty:
            return


if __name__ == "__main__":
    main()
