"""Train the denoiser on simulated cities: generation on the CPU cores, training on the accelerator, at the same time.

    python3 train.py --out OUT --minutes 8 --workers 15          (one GPU)
    python3 train.py --out OUT --smoke                           (any CPU, two minutes)
    python3 train.py --out OUT --start FILE --roaming --lesson scales --side 384 --batch 16    (the fourth stage)
    python3 train.py --out OUT --start FILE --roaming --untidy --lesson both --side 384        (the fifth stage)
    python3 train.py --out OUT --start FILE --roaming --untidy --varied --lesson both --side 384   (the ninth stage)

Writes weights.npz (float16), validation.json and log.jsonl; of several networks the others as weights-1.npz and so on.
"""

import argparse
import json
import math
import multiprocessing
import os
import queue
import sys
import threading
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from product import network
from samples import FIELDS, SIDE, random_samples, validation_samples
from streets import KINDS


def _make_validation(tasks, results, side: int, gaussian: bool) -> None:
    """Worker: validation cities until there are none left."""
    while True:
        try:
            kind, number = tasks.get(timeout=1.0)
        except queue.Empty:
            return
        for epsilon, mapped, fields, constants in validation_samples(kind, number, side, gaussian):
            results.put((kind, number, epsilon, mapped, fields, constants))


def _work(seed: int, side: int, options: dict[str, bool], tasks, validation, samples) -> None:
    _make_validation(tasks, validation, side, options["gaussian"])
    for fields, constants in random_samples(seed, side, **options):
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
    parser.add_argument(
        "--pool",
        type=int,
        default=20_000,
        help="samples of the smaller side kept on the accelerator; a third of it of the larger",
    )
    parser.add_argument("--first", type=int, default=600, help="samples to wait for before the first step")
    parser.add_argument("--most-steps", type=int, default=10**9)
    parser.add_argument("--validation-cities", type=int, default=2, help="of each kind")
    parser.add_argument("--rate", type=float, default=1.2e-3, help="peak learning rate")
    parser.add_argument("--network", action="append", type=_shape, metavar="PATCH:CHANNELS",
                        help="a network's shape, such as 2:48,64,96,96; several share the samples")  # fmt: skip
    parser.add_argument("--start", type=Path, help="weights to go on from instead of random ones")
    parser.add_argument("--lesson", action="append", help="a loss by its name in lessons.py; a network for each")
    parser.add_argument("--roaming", action="store_true", help="scopes that need not have the city in their middle")
    parser.add_argument("--untidy", action="store_true", help="half of the cities with ends beside the streets")
    parser.add_argument("--varied", action="store_true", help="half of the fields with other sizes of blocks and cells")
    parser.add_argument("--gaussian", action="store_true", help="Gaussian noise, divided among the levels at random")
    parser.add_argument("--smoke", action="store_true", help="tiny, for a CPU: shows that everything runs")
    chosen = parser.parse_args()
    chosen.network = chosen.network or [(network.PATCH, network.CHANNELS)]
    if chosen.smoke:
        chosen.workers, chosen.batch, chosen.side, chosen.pool = 1, 2, 128, 48
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
    pipes = tasks, validation, samples
    options = {name: getattr(chosen, name) for name in ("roaming", "untidy", "varied", "gaussian")}
    workers = [
        fork.Process(target=_work, daemon=True, args=(1000 * chosen.seed + k, chosen.side, options, *pipes))
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
    from denoiser import initial_state, initial_weights, put, train_steps
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
        roaming=chosen.roaming, untidy=chosen.untidy, varied=chosen.varied, gaussian=chosen.gaussian)  # fmt: skip
    held_out, chunk = [], 8
    room = {chosen.side // 2: chosen.pool, chosen.side: chosen.pool // 3}  # most scopes are small: no step on padding
    room = {side: size - size % chunk for side, size in room.items()}
    pools = {
        side: (jnp.zeros((size, side, side, len(FIELDS)), jnp.float16), jnp.zeros((size, 12), jnp.float32))
        for side, size in room.items()
    }
    made, steps, random = dict.fromkeys(room, 0), 0, np.random.default_rng(chosen.seed)
    ready = queue.Queue(maxsize=64)
    threading.Thread(target=_gather, args=(samples, ready, chunk, tuple(room)), daemon=True).start()
    begun = _read_weights(chosen.start) if chosen.start else None
    states = [initial_state(chosen.seed, shape, begun) for shape in chosen.network]
    lessons = [LESSONS[name] for name in chosen.lesson]
    burst = 10 if not chosen.smoke else 2
    steppers = {
        side: _compiled(train_steps, states, lessons, pool, chosen.batch, burst) for side, pool in pools.items()
    }
    say(event="compiled")
    expected = kinds * chosen.validation_cities * 6
    deadline = 60 * chosen.minutes
    training_began, rate, values, said, saved = None, 0.0, [math.nan], 0.0, 0.0

    while True:
        _drain(validation, held_out)
        arrived = []
        _drain(ready, arrived, most=8)
        for side, *part in arrived:
            pools[side] = put(pools[side], *part, made[side] % room[side])
            made[side] += chunk
        elapsed = time.monotonic() - start
        if sum(made.values()) < chosen.first and elapsed < deadline:
            time.sleep(0.05)
            continue
        if training_began is None:
            training_began = elapsed
            say(event="first step", samples=sum(made.values()))
        done = max((elapsed - training_began) / max(deadline - training_began, 1e-9), steps / chosen.most_steps)
        if done >= 1:
            break
        rate = chosen.rate * min(1.0, (steps + 1) / 300) * 0.5 * (1 + math.cos(math.pi * done))
        side = int(random.choice(list(made), p=np.array(list(made.values())) / sum(made.values())))
        filled, now = np.int32(min(made[side], room[side])), np.float32(rate)
        results = [step(state, pools[side], filled, now) for step, state in zip(steppers[side], states)]
        states, values = zip(*results)
        values[-1].block_until_ready()
        steps += burst
        if elapsed - said > 10:
            say(step=steps, loss=[round(float(v), 4) for v in values], rate=round(rate, 6), samples=sum(made.values()))
            said = elapsed
        if elapsed - saved > 150:  # a machine that is lent can be taken back
            _save_weights(chosen.out, states)
            saved = elapsed
    say(event="trained", steps=steps, samples=sum(made.values()), loss=[round(float(v), 4) for v in values])
    while len(held_out) < expected and time.monotonic() - start < deadline + 20:
        _drain(validation, held_out)
        time.sleep(0.05)
    named = _save_weights(chosen.out, states)
    if begun:
        named["-start"] = initial_weights(chosen.seed, chosen.network[0], begun)
    for name, weights in named.items():
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


def _gather(samples, ready: queue.Queue, size: int, sides: tuple[int, ...]) -> None:
    """Thread: samples off the pipe as they come, in chunks of one side; workers stand still while nobody reads it."""
    waiting = {side: [] for side in sides}
    while True:
        fields, constants = samples.get()
        side = min(side for side in sides if side >= max(fields.shape[:2]))
        waiting[side].append((fields, constants))
        if len(waiting[side]) == size:
            part, waiting[side] = waiting[side], []
            ready.put((side, _padded([s[0] for s in part], side), np.stack([s[1] for s in part])))


def _save_weights(folder: Path, states) -> dict[str, dict]:
    """weights.npz, weights-1.npz and so on: the averages as float16; returns them by the end of their name."""
    named = {}
    for number, state in enumerate(states):
        name = f"-{number}" if number else ""
        named[name] = {
            kind: {key: np.asarray(value, np.float16) for key, value in part.items()} for kind, part in state[1].items()
        }
        flat = {f"{kind}/{key}": value for kind, part in named[name].items() for key, value in part.items()}
        np.savez(folder / f"weights{name}.npz", **flat)
    return named


def _padded(parts: list[np.ndarray], side: int) -> np.ndarray:
    whole = np.zeros((len(parts), side, side, len(FIELDS)), np.float16)
    for place, part in zip(whole, parts):
        place[: part.shape[0], : part.shape[1]] = part
    return whole


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
