"""Which sums of cells should be asked of the occupancy? One small network for each design of the questions, compared.

    python3 questions_trial.py --out OUT --gather 75 --seconds 38 --workers 16                                (one GPU)
    python3 questions_trial.py --out OUT --gather 50 --seconds 26 --workers 16 --designs adaptive,lesscoarse,wide,finer
    python3 questions_trial.py --out OUT --smoke                                                (any CPU, one minute)

A design says which partitions of the cells are asked for their noisy sums, and with which share of ε; every cell is in
one sum of each partition, so the shares add up to what the occupancy may spend. All designs see the same crops of
simulated cities, and their networks have the same size, loss, schedule and seconds (not steps: what is slower to
compute takes fewer). They are judged on crops of a worker that none of them learns from.

`worth` is ε·count / cells: with a share s the noise of a cell is 1 / (worth·s) times the mean cell. Numbers are JSD at
1, 4 and 16 cells and KL(truth ‖ estimate), in nats. Writes results.json and the weights (NAME.npz, float16).
Privacy: nothing here is private; the cities are simulated and the noise is seeded.
"""

import argparse
import json
import multiprocessing
import os
import queue
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray
from product import features, network
from samples import _KIND_SHARES, KINDS, build_city, look

CROP = 128
"""Rows and columns of a crop."""
SHARE = 0.39
"""Of ε, what all questions about the occupancy spend together."""
WORTHS = (0.1, 0.3, 1.0, 3.0)
WORTH_RANGE = (0.06, 8.0)
"""What is judged, and the range that training draws from."""
MOST_HELD_OUT = 480
MEASURES = ("1 cell", "4", "16", "KL")
_USUAL_SHARE = 0.15
_EMA = 0.998
_PEAK_RATE = 1.5e-3
_JUDGED_AT_ONCE = 32


@dataclass(frozen=True)
class Focus:
    """How the rest of the share is divided between squares of 4 cells and single cells, block by block.

    With s the signal that the noisy block promises a single cell (in units of noise, were the whole rest spent on it),
    the single cells get low + (high − low)·log(s / at) / log(until / at) of it, never less than low or more than high.
    """

    low: float
    at: float
    high: float
    until: float


@dataclass(frozen=True)
class Design:
    """Partitions with their shares of ε, in the order in which they are asked.

    A partition's name: "4" squares of 4 × 4 cells, "h8" and "v8" strips of 8 along a row or a column, "d8" and "e8"
    along the two diagonals. With `focus` only the blocks of 16 have a fixed share.
    """

    shares: dict[str, float]
    focus: Focus | None = None

    @property
    def partitions(self) -> tuple[str, ...]:
        return (*self.shares, "4", "1") if self.focus else tuple(self.shares)


DESIGNS = {
    "base": Design({"16": 0.10, "4": 0.14, "1": 0.15}),
    "fine": Design({"16": 0.06, "4": 0.10, "1": 0.23}),
    "strips8": Design({"16": 0.06, "4": 0.06, "h8": 0.06, "v8": 0.06, "1": 0.15}),
    "strips8b": Design({"16": 0.05, "h8": 0.09, "v8": 0.09, "1": 0.16}),
    "four8": Design({"16": 0.05, "h8": 0.055, "v8": 0.055, "d8": 0.055, "e8": 0.055, "1": 0.12}),
    "dyadic": Design({"16": 0.06, "8": 0.05, "4": 0.06, "2": 0.08, "1": 0.14}),
    "adaptive": Design({"16": 0.08}, Focus(0.35, 0.1, 0.9, 1.0)),
    "lesscoarse": Design({"16": 0.05}, Focus(0.35, 0.1, 0.9, 1.0)),
    "wide": Design({"16": 0.08}, Focus(0.2, 0.03, 0.95, 1.0)),
    "finer": Design({"16": 0.08}, Focus(0.35, 0.03, 0.95, 0.5)),
}
FIRST_RUN = ("base", "fine", "strips8", "strips8b", "four8", "dyadic", "adaptive")
"""What is compared unless others are named; the variants of `adaptive` came second."""


def crops_of(seed: int):
    """An endless stream of (2, CROP, CROP): occupancy as multiples of the scope's mean cell, and where the scope is."""
    random = np.random.default_rng([seed, 77])
    weight = np.array([_KIND_SHARES.get(kind, 1.0) for kind in KINDS])
    while True:
        free = random.random() < 0.7
        kind = str(random.choice(KINDS, p=weight / weight.sum()))
        city = build_city(kind, random, outskirts=free, untidy=random.random() < 0.5)
        for _ in range(4):
            view = look(city, random, side=256, roaming=free)
            if view.count < 300:
                continue
            for _ in range(2):
                row, column = (int(random.integers(0, max(size - CROP, 0) + 1)) for size in view.area.shape)
                here = np.s_[row : row + CROP, column : column + CROP]
                part = view.occupancy[here]
                if part.sum() < 0.1 * view.count:
                    continue
                padded = np.zeros((2, CROP, CROP), np.float32)
                padded[0, : part.shape[0], : part.shape[1]] = part / view.count * view.area.size
                padded[1, : part.shape[0], : part.shape[1]] = view.area[here] > 0
                yield padded.astype(np.float16)


def _work(seed: int, crops) -> None:
    for crop in crops_of(seed):
        crops.put((seed, crop))


def gather(
    seconds: float, workers: int, first: int = 1, enough: int | None = None
) -> tuple[NDArray[np.float16], NDArray[np.float16]]:
    """Crops to learn from, and those of the first worker to judge by; sooner done when there are `enough` of both."""
    context = multiprocessing.get_context("spawn")
    pipe = context.Queue(maxsize=2000)
    processes = [context.Process(target=_work, args=(first + k, pipe), daemon=True) for k in range(workers)]
    for process in processes:
        process.start()
    end, train, test = time.monotonic() + seconds, [], []
    while time.monotonic() < end and not (enough and min(len(train), len(test)) >= enough):
        try:
            seed, crop = pipe.get(timeout=0.5)
        except queue.Empty:
            continue
        (test if seed == first else train).append(crop)
    for process in processes:
        process.terminate()
    if not train or not test:
        raise SystemExit("No crops were made in this time; raise --gather.")
    return np.stack(train), np.stack(test)


def pooled(x, name: str):
    """Sums of (batch, rows, columns) over a partition, and the function that gives each cell the value of its sum."""
    import jax.numpy as jnp

    side, slant = int(name.lstrip("hvde")), {"d": 1, "e": -1}.get(name[0], 0)
    high, wide = {"h": (1, side), "v": (side, 1), "d": (side, 1), "e": (side, 1)}.get(name[0], (side, side))
    if slant:
        x = _sheared(x, slant)
    batch, rows, columns = x.shape
    sums = x.reshape(batch, rows // high, high, columns // wide, wide).sum(axis=(2, 4))

    def back(values):
        cells = jnp.repeat(jnp.repeat(values, high, axis=1), wide, axis=2)
        return _sheared(cells, -slant) if slant else cells

    return sums, back


def _sheared(x, slant: int):
    """Row r moved by slant·r columns, around the edge: diagonals become columns."""
    import jax.numpy as jnp

    rows, columns = x.shape[-2:]
    index = (np.arange(columns)[None] + slant * np.arange(rows)[:, None]) % columns
    return jnp.take_along_axis(x, jnp.asarray(np.broadcast_to(index, x.shape)), axis=-1)


def focused(coarse, worth, design: Design) -> dict:
    """The shares of squares of 4 cells and of single cells, for each cell; together what the blocks of 16 leave."""
    import jax.numpy as jnp

    focus, rest = design.focus, SHARE - design.shares["16"]
    signal = jnp.log(jnp.maximum(coarse, 1e-3) * worth * rest)
    slope = (focus.high - focus.low) * (signal - np.log(focus.at)) / np.log(focus.until / focus.at)
    fine = jnp.clip(focus.low + slope, focus.low, focus.high)
    return {"4": rest * (1 - fine), "1": rest * fine}


def inputs(key, truth, area, worth, design: Design):
    """(batch, rows, columns, channels): what the network sees of `truth`, which is in multiples of the mean cell.

    First the log of the noisy blocks of 16 (a quarter of it); then each partition's answer in units of its noise, of
    focused ones after the log of their share; last the scope.
    """
    import jax
    import jax.numpy as jnp

    channels, divided, worth = [], {}, worth[:, None, None]
    for part_key, name in zip(jax.random.split(key, len(design.partitions)), design.partitions):
        sums, back = pooled(truth, name)
        if name in divided:
            # Alike in a whole block of 16, so the mean over a square is the share of each of its cells.
            share = pooled(divided[name], name)[0] / int(name) ** 2
            channels.append(jnp.log(divided[name] / _USUAL_SHARE))
        else:
            share = design.shares[name]
        scale = 1 / (worth * share)
        noisy = sums + jax.random.laplace(part_key, sums.shape) * scale
        if name == "16":
            coarse, noise = (back(part) / 256 for part in (noisy, jnp.broadcast_to(scale, sums.shape)))
            channels.append(jnp.log(jnp.maximum(coarse, 0.3 * noise)) / 4 * (area > 0))
            divided = focused(coarse, worth, design) if design.focus else {}
        channels.append(jnp.arcsinh(back(noisy / scale)) / 3)
    return jnp.stack([*channels, area], -1)


def channel_count(design: Design) -> int:
    """How many channels `inputs` gives."""
    return len(design.partitions) + 2 + (2 if design.focus else 0)


def scores(weights, key, crops, worth, design: Design):
    """JSD at 1, 4 and 16 cells and KL, one of each a crop; the network corrects the noisy blocks of 16."""
    import jax.numpy as jnp
    from denoiser import divergences, log_correction, log_share

    truth, area = crops[:, 0].astype(jnp.float32), crops[:, 1].astype(jnp.float32)
    seen = inputs(key, truth, area, worth, design)
    constants = jnp.stack([jnp.log(worth) / 3] * features.CONSTANTS, -1)
    return divergences(truth, log_share(4 * seen[..., 0], log_correction(weights, seen, constants), area))


def loss(weights, key, crops, worth, design: Design):
    """3·JSD₁ + JSD₄ + 2·JSD₁₆ + .6·KL, mean over the batch."""
    cell, square, block, kl = scores(weights, key, crops, worth, design)
    return (3 * cell + 0.6 * kl + square + 2 * block).mean()


def initial_state(design: Design, widths: tuple[int, ...]):
    """Weights as `denoiser.initial_weights` draws them, their average, the optimiser's memory, a key and a counter."""
    import jax
    import jax.numpy as jnp
    from denoiser import optimiser

    random, weights = np.random.default_rng(3), {}
    for name, size in network.parameter_shapes(channel_count(design), features.CONSTANTS, widths, 1).items():
        gain = 0.0 if "film" in name or "head" in name or name.endswith("/b") else 1.4
        gain *= 0.4 if "conv2" in name else 1.0
        values = random.normal(size=size) * gain / np.sqrt(max(np.prod(size[:-1]), 1))
        weights[name] = jnp.array(values, jnp.float32)
    average = jax.tree.map(jnp.copy, weights)  # a copy: the state is donated
    return weights, average, optimiser().init(weights), jax.random.key(5), jnp.zeros((), jnp.int32)


def stepper(design: Design, batch: int, burst: int):
    """The compiled function of (state, rate, crops) that takes `burst` optimiser steps on random crops."""
    import jax
    import jax.numpy as jnp
    import optax
    from denoiser import optimiser

    low, high = np.log(WORTH_RANGE)

    @partial(jax.jit, donate_argnums=(0,))
    def steps(state, rate, data):
        def one(state, _):
            weights, average, memory, key, step = state
            key, pick, draw, noise, turn = jax.random.split(key, 5)
            crops = _turned(data[jax.random.randint(pick, (batch,), 0, len(data))], turn)
            worth = jnp.exp(jax.random.uniform(draw, (batch,), minval=low, maxval=high))
            value, slope = jax.value_and_grad(loss)(weights, noise, crops, worth, design)
            sound = jnp.isfinite(optax.global_norm(slope))  # one bad crop must not end a training
            slope = jax.tree.map(lambda s: jnp.where(sound, s, 0.0), slope)
            change, memory = optimiser().update(slope, memory, weights)
            weights = jax.tree.map(lambda w, c: w + rate * c, weights, change)
            decay = jnp.minimum(_EMA, (1 + step) / (10 + step))
            average = jax.tree.map(lambda a, w: decay * a + (1 - decay) * w, average, weights)
            return (weights, average, memory, key, step + 1), value

        return jax.lax.scan(one, state, length=burst)

    return steps


def _turned(crops, key):
    """The batch as a whole turned and flipped at random."""
    import jax
    import jax.numpy as jnp

    flips = jax.random.bernoulli(key, 0.5, (3,))
    crops = jnp.where(flips[0], crops[:, :, ::-1], crops)
    crops = jnp.where(flips[1], crops[..., ::-1], crops)
    return jnp.where(flips[2], crops.swapaxes(2, 3), crops)


def train(design: Design, data, chosen: argparse.Namespace):
    """The averaged weights after `chosen.seconds` of training, compiling not counted, and the steps that fitted in."""
    state, count = initial_state(design, chosen.channels), 0
    step = stepper(design, chosen.batch, chosen.burst).lower(state, np.float32(0), data).compile()
    began = time.monotonic()
    while (done := max((time.monotonic() - began) / chosen.seconds, count / chosen.most_steps)) < 1:
        rate = _PEAK_RATE * min(1, (count + 1) / 300) * 0.5 * (1 + np.cos(np.pi * done))
        state, values = step(state, np.float32(rate), data)
        values.block_until_ready()
        count += chosen.burst
    return state[1], count


def judge(weights, held_out, design: Design) -> dict[str, list[float]]:
    """Worth → the mean of each of `MEASURES` over the held-out crops, in whole portions; every design's keys alike."""
    import jax
    import jax.numpy as jnp

    judged, row = jax.jit(partial(scores, design=design)), {}
    size = min(_JUDGED_AT_ONCE, len(held_out))
    for worth in WORTHS:
        parts = [
            judged(weights, jax.random.key(9 + i), held_out[i : i + size], jnp.full(size, worth))
            for i in range(0, len(held_out) - size + 1, size)
        ]
        row[str(worth)] = [round(float(np.mean([part[m] for part in parts])), 4) for m in range(len(MEASURES))]
    return row


def table(results: dict[str, dict[str, list[float]]]) -> str:
    """The results as plain text, a line for each design."""
    worths = list(next(iter(results.values())))
    lines = [
        f"{'worth':10s}" + "".join(f" |{worth:>8s}{'':21s}" for worth in worths),
        f"{'JSD at':10s}" + len(worths) * (" |" + "".join(f"{name:>7s}" for name in MEASURES) + " "),
    ]
    for name, row in results.items():
        cells = (" |" + "".join(f"{value:7.4f}" for value in row[worth]) + " " for worth in worths)
        lines.append(f"{name:10s}" + "".join(cells))
    return "\n".join(line.rstrip() for line in lines)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--gather", type=float, default=75.0, help="seconds of making crops, before any training")
    parser.add_argument("--seconds", type=float, default=45.0, help="of training, for each design")
    parser.add_argument("--workers", type=int, default=15, help="at least two: the first one's crops are held out")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--channels", type=_numbers, default=(24, 48, 64, 96), help="of the scales of the network")
    parser.add_argument("--most-steps", type=int, default=10**9)
    parser.add_argument("--designs", help="names with commas between them, of " + ", ".join(DESIGNS))
    parser.add_argument("--smoke", action="store_true", help="tiny, for a CPU: shows that everything runs")
    chosen = parser.parse_args()
    chosen.designs = chosen.designs.split(",") if chosen.designs else list(FIRST_RUN)
    if unknown := set(chosen.designs) - set(DESIGNS):
        parser.error(f"no such design: {', '.join(sorted(unknown))}; there are {', '.join(DESIGNS)}")
    chosen.burst, chosen.enough = 20, None
    if chosen.smoke:
        chosen.workers, chosen.batch, chosen.channels, chosen.designs = 2, 2, (4, 6), ["four8", "adaptive"]
        chosen.burst, chosen.most_steps, chosen.enough = 1, 2, 2
    if chosen.workers < 2:
        parser.error("--workers must be at least 2: the crops of the first one are held out")
    return chosen


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def main() -> None:
    chosen = arguments()
    chosen.out.mkdir(parents=True, exist_ok=True)
    crops, held_out = gather(chosen.gather, chosen.workers, enough=chosen.enough)
    print("crops", crops.shape, held_out.shape, flush=True)

    import jax  # after the workers: they need the cores, and nothing of it
    import jax.numpy as jnp

    if chosen.smoke:  # compiling takes longer than running here
        jax.config.update("jax_disable_most_optimizations", True)
    data, held_out = jnp.asarray(crops), jnp.asarray(held_out[:MOST_HELD_OUT])
    results = {}
    for name in chosen.designs:
        weights, steps = train(DESIGNS[name], data, chosen)
        results[name] = judge(weights, held_out, DESIGNS[name])
        print(name, "steps", steps, json.dumps(results[name]), flush=True)
        np.savez(chosen.out / f"{name}.npz", **{key: np.asarray(value, np.float16) for key, value in weights.items()})
    (chosen.out / "results.json").write_text(json.dumps(results))
    print(table(results))


if __name__ == "__main__":
    main()
