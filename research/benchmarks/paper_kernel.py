"""Speed, memory and exactness of the blocked kernel of `wayveil.dpe`.

Needs python3, numpy and jax, nothing else:

    PYTHONPATH=src python3 research/benchmarks/paper_kernel.py --json kernel.json
    PYTHONPATH=src python3 research/benchmarks/paper_kernel.py --sizes 2000,8000,20000 --precisions float32 --repeat 2

Prints, for each size and precision, ms per iteration (loss and gradient), the share of the matrix-multiply rate
that was measured on the same device just before, and memory; and how far sums and gradient are from
float64 on a small case. On a CPU each size runs in a process of its own, so that its peak resident memory can be told.
"""

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np

from wayveil.dpe.kernel import Plan, compiled, default_plan, metric_sums, on_gpu, x64


def cloud(m: int, dim: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Random walks over a city of 20 km, and targets 5 % away from their metric sums' scale."""
    rng = np.random.default_rng(seed)
    points = dim // 3
    steps = rng.normal(size=(m, points, 3)).astype(np.float32) * 300.0
    start = rng.uniform(0.0, 20_000.0, size=(m, 1, 3)).astype(np.float32)
    vectors = np.zeros((m, dim), np.float32)
    vectors[:, : 3 * points] = (start + np.cumsum(steps, axis=1)).reshape(m, -1)
    targets = m * np.sqrt(points) * rng.uniform(8_000, 16_000, size=m)
    return vectors, targets


def seconds_each(function, arguments, repeat: int) -> float:
    """Median over five rounds of the time of one call, `repeat` calls in flight."""
    import jax

    rounds = []
    for _ in range(5 if repeat > 2 else 1):
        begin = time.perf_counter()
        for _ in range(repeat):
            result = function(*arguments)
        jax.block_until_ready(result)
        rounds.append((time.perf_counter() - begin) / repeat)
    return float(np.median(rounds))


PRESETS = {"float32": "F32_F32_F32", "tf32": "TF32_TF32_F32", "bf16": "BF16_BF16_F32"}


def product(a, b, axes: tuple[int, int], precision: str):
    """ab as the library of the device does it in that precision."""
    import jax
    import jax.numpy as jnp

    how = jax.lax.DotAlgorithmPreset[PRESETS[precision]] if on_gpu() and precision in PRESETS else None
    wide = jnp.float64 if precision == "float64" else jnp.float32
    return jax.lax.dot_general(a, b, (((axes[0],), (axes[1],)), ((), ())), precision=how, preferred_element_type=wide)


def matmul_tflops(precision: str, size: int) -> float:
    """The rate of a large square product in that precision: the ceiling."""
    import jax
    import jax.numpy as jnp

    with x64(Plan(size, precision)):
        kind = {"float64": jnp.float64, "bf16": jnp.bfloat16}.get(precision, jnp.float32)
        if not on_gpu() and precision == "bf16":
            kind = jnp.float32
        a, b = (jax.random.normal(jax.random.key(k), (size, size)).astype(kind) for k in (1, 2))
        function = jax.jit(lambda a, b: product(a, b, (1, 0), precision))
        jax.block_until_ready(function(a, b))
        return 2 * size**3 / seconds_each(function, (a, b), 20 if on_gpu() else 2) / 1e12


def naive(m: int, dim: int, precision: str, repeat: int) -> dict:
    """Plain jax in the same precision: all distances at once, gradient by autodiff."""
    import jax
    import jax.numpy as jnp

    from wayveil.dpe.losses import loss_and_slopes

    vectors, targets = cloud(m, dim)
    arguments = (jnp.asarray(vectors - vectors.mean(axis=0)), jnp.asarray(targets, jnp.float32))

    def loss(points, targets):
        norms = jnp.sum(points * points, axis=1)
        square = norms[:, None] + norms[None, :] - 2.0 * product(points, points, (1, 1), precision)
        apart = (square > 0) & ~jnp.eye(m, dtype=bool)
        distance = jnp.where(apart, jnp.sqrt(jnp.where(apart, square, 1.0)), 0.0)
        return loss_and_slopes(distance.sum(axis=1) - targets, "mean-square")[0]

    function = jax.jit(jax.value_and_grad(loss)).lower(*arguments).compile()
    jax.block_until_ready(function(*arguments))
    seconds = seconds_each(function, arguments, repeat)
    memory = function.memory_analysis()
    total = memory.temp_size_in_bytes + memory.argument_size_in_bytes + memory.output_size_in_bytes
    return {"naive": True, "m": m, "dim": dim, "precision": precision, "ms_per_iteration": seconds * 1e3,
            "program_mb": total / 1e6}  # fmt: skip


def measure(m: int, dim: int, plan: Plan, repeat: int, ceiling: float) -> dict:
    """One line of the table."""
    import jax
    import jax.numpy as jnp

    vectors, targets = cloud(m, dim)
    with x64(plan):
        wide = jnp.float64 if plan.precision == "float64" else jnp.float32
        arguments = (jnp.asarray(vectors, wide), jnp.asarray(targets, wide))
        begin = time.perf_counter()
        function = compiled(m, dim, "mean-square", plan).lower(*arguments).compile()
        compile_s = time.perf_counter() - begin
        jax.block_until_ready(function(*arguments))
        busy = time.process_time()
        value, gradient, _ = jax.device_get(function(*arguments))
        busy = time.process_time() - busy
        seconds = seconds_each(function, arguments, repeat)
        memory = function.memory_analysis()
    line = {
        "m": m,
        "dim": dim,
        "precision": plan.precision,
        "block": plan.block,
        "ms_per_iteration": seconds * 1e3,
        "tflops": 4 * m * m * dim / seconds / 1e12,
        "share_of_matmul": 4 * m * m * dim / seconds / 1e12 / ceiling,
        "program_mb": (memory.temp_size_in_bytes + memory.argument_size_in_bytes + memory.output_size_in_bytes) / 1e6,
        "compile_s": compile_s,
        "finite": bool(np.isfinite(value) and np.isfinite(gradient).all()),
    }
    if not on_gpu():
        line["cpu_s_per_iteration"] = busy  # of all cores together; unlike the wall clock, it bears a busy machine
        line["peak_rss_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    return line


def in_child(m: int, dim: int, plan: Plan, repeat: int, ceiling: float) -> dict:
    """`measure` in a process of its own, so that its peak memory is its own."""
    case = json.dumps([m, dim, plan.block, plan.precision, repeat, ceiling])
    output = subprocess.run([sys.executable, __file__, "--case", case], capture_output=True, text=True, check=True)
    return json.loads(output.stdout.splitlines()[-1])


def agreement(precision: str, m: int = 1000, dim: int = 600) -> dict:
    """Relative distance of sums and gradient from a float64 computation of every pair, without blocks."""
    vectors, targets = cloud(m, dim, seed=3)
    points = vectors.astype(np.float64)
    sums, gradient = np.empty(m), np.empty((m, dim))
    for i in range(m):
        sums[i] = np.linalg.norm(points[i] - points, axis=1).sum()
    slopes = 2.0 * (sums - targets) / m**3
    for i in range(m):
        away = points[i] - points
        distance = np.linalg.norm(away, axis=1)
        distance[i] = np.inf
        gradient[i] = ((slopes[i] + slopes) / distance) @ away
    plan = Plan(256, precision)
    kind = np.float64 if precision == "float64" else np.float32
    with x64(plan):
        _, found, _ = compiled(*vectors.shape, "mean-square", plan)(vectors.astype(kind), targets.astype(kind))
        found = np.asarray(found)
    found_sums = metric_sums(vectors, plan)
    return {
        "m": m,
        "dim": dim,
        "precision": precision,
        "sums_relative_error": float(np.linalg.norm(found_sums - sums) / np.linalg.norm(sums)),
        "gradient_relative_error": float(np.linalg.norm(found - gradient) / np.linalg.norm(gradient)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default=None, help="numbers of trajectories, by commas")
    parser.add_argument("--dim", type=int, default=600)
    parser.add_argument("--precisions", default=None, help="of float64, float32, tf32, bf16; by commas")
    parser.add_argument("--blocks", default=None, help="rows a block, by commas; the kernel's own choice if left out")
    parser.add_argument("--repeat", type=int, default=None, help="iterations a timing")
    parser.add_argument("--naive", type=int, default=None, help="also plain jax, for so many trajectories")
    parser.add_argument("--json", default=None, help="write all figures to this path")
    parser.add_argument("--case", default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        m, dim, block, precision, repeat, ceiling = json.loads(options.case)
        print(json.dumps(measure(m, dim, Plan(block, precision), repeat, ceiling)))
        return

    import jax

    gpu = on_gpu()
    sizes = [int(s) for s in (options.sizes or ("16384,20000" if gpu else "2000,8000,20000")).split(",")]
    precisions = (options.precisions or ("float32,tf32,bf16" if gpu else "float32")).split(",")
    repeat = options.repeat or (20 if gpu else 1)
    report = {"device": jax.devices()[0].device_kind, "jax": jax.__version__}
    report |= {"matmul_tflops": {}, "kernel": [], "agreement": [], "naive": []}
    print(f"device {report['device']}, jax {report['jax']}", flush=True)
    for precision in precisions:
        report["agreement"].append(agreement(precision))
        print(json.dumps(report["agreement"][-1]), flush=True)
        ceiling = report["matmul_tflops"][precision] = matmul_tflops(precision, 8192 if gpu else 2048)
        print(f"matmul {precision}: {ceiling:.3g} TFLOP/s", flush=True)
        if options.naive:
            report["naive"].append(naive(options.naive, options.dim, precision, repeat))
            print(json.dumps(report["naive"][-1]), flush=True)
        for m in sizes:
            own = default_plan(m, precision)
            blocks = [int(b) for b in options.blocks.split(",")] if options.blocks else [own.block]
            for plan in [Plan(b, precision) for b in blocks]:
                line = (measure if gpu else in_child)(m, options.dim, plan, repeat, ceiling)
                report["kernel"].append(line)
                print(json.dumps({k: round(v, 4) if isinstance(v, float) else v for k, v in line.items()}), flush=True)
                if options.json:
                    with open(options.json, "w", encoding="utf-8") as out:
                        json.dump(report, out, indent=1)


if __name__ == "__main__":
    main()
