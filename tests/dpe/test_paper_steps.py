"""Each step of the published method against its equation, on cases done by hand."""

from dataclasses import replace

import numpy as np
import pytest

from wayveil.dpe.align import align, pad, unalign
from wayveil.dpe.descent import Compared, Settings, descend, sums_of
from wayveil.dpe.embed import embed
from wayveil.dpe.method import Options, dpe, options_of
from wayveil.dpe.metrics import EUCLIDEAN, frechet, metric_of, soft_dtw
from wayveil.dpe.penalties import box, disc, total
from wayveil.dpe.perturb import perturb, sensitivity
from wayveil.dpe.random_walks import HALF_SIDE, random_walks
from wayveil.dpe.transform import fit_transform
from wayveil.errors import InputError


def flat(*trajectories: list[float]) -> tuple[np.ndarray, np.ndarray]:
    """Trajectories with points (value, -value)."""
    points = np.array([[v, -v] for t in trajectories for v in t])
    return points, np.cumsum([0] + [len(t) for t in trajectories])


def test_align_extends_first_and_last_and_puts_the_odd_one_behind() -> None:
    points, offsets = flat([1.0, 2.0, 3.0, 4.0, 5.0], [7.0, 8.0], [9.0])
    behind = align(points, offsets)
    assert behind.points[:, :, 0].tolist() == [[1, 2, 3, 4, 5], [7, 7, 8, 8, 8], [9, 9, 9, 9, 9]]
    assert behind.vectors.shape == (3, 10)
    back, found = unalign(behind.points, behind)
    assert np.array_equal(back, points)
    assert np.array_equal(found, offsets)


def test_metric_sums_of_the_aligned() -> None:
    points, offsets = flat([0.0, 0.0], [3.0])
    assert sums_of(align(points, offsets)) == pytest.approx([6.0, 6.0])  # sqrt(4 * 9)


def test_frechet_tends_to_the_discrete_frechet_distance() -> None:
    a = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [0.0, 0.0]])
    b = np.array([[0.0, 1.0], [2.0, 3.0], [0.0, 0.0], [0.0, 0.0]])
    # Three points against two: the last pair is 3 apart, the best coupling cannot avoid it.
    assert float(frechet(1e-3).distance(a, b, 3, 2)) == pytest.approx(3.0, abs=0.01)
    assert float(frechet(1e-3).distance(b, a, 2, 3)) == pytest.approx(3.0, abs=0.01)


def test_soft_dtw_tends_to_dtw() -> None:
    a = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]])
    b = np.array([[0.0, 1.0], [2.0, 3.0], [0.0, 0.0]])
    # Coupling (0,0), (1,0), (2,1): 1 + sqrt(2) + 3.
    assert float(soft_dtw(1e-3).distance(a, b, 3, 2)) == pytest.approx(4.0 + np.sqrt(2.0), abs=0.01)


def test_other_metrics_descend_without_alignment() -> None:
    rng = np.random.default_rng(0)
    counts = [4, 6, 3, 5, 6]
    padded = pad(rng.normal(size=(sum(counts), 2)) * 5, np.cumsum([0, *counts]))
    metric = frechet(0.2)
    sums = sums_of(padded, metric)
    made = descend(padded.vectors, sums * 1.2, Settings("mean-square", 2.0, 40), compared=Compared(metric, padded))
    assert made.losses[-1] < 0.5 * made.losses[0]


def test_a_metric_given_as_a_function_agrees_with_the_kernel() -> None:
    import jax.numpy as jnp

    def euclidean(a, b, *counts):
        square = jnp.sum((a - b) ** 2)
        return jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1.0)), 0.0)

    walks = random_walks(12, 6, 3)
    targets = sums_of(walks) * 1.1
    settings = Settings("mean-square", 1.0, 5)
    compared = Compared(replace(EUCLIDEAN, distance=euclidean), walks)
    slow = descend(walks.vectors, targets, settings, compared=compared)
    fast = descend(walks.vectors, targets, settings)
    assert slow.vectors == pytest.approx(fast.vectors, abs=1e-4)
    assert np.abs(slow.vectors - walks.vectors).max() > 1e-2


def test_embedding_matches_the_sums() -> None:
    walks = random_walks(30, 10, 1)
    sums = sums_of(walks)
    found = embed(walks.vectors, sums, 8, Settings("mean-square", 3.0, 300), seed=2)
    assert found.vectors.shape == (30, 8)
    assert np.abs(found.residuals).mean() < 0.02 * sums.mean()
    run = dpe(walks, 1.0, Options(epsilon=1.0, embedding=Settings(), synthesis=Settings(iterations=0)))
    assert np.array_equal(run.embedded, walks.vectors)  # D' = D: the originals


def test_transform_is_least_squares() -> None:
    rng = np.random.default_rng(0)
    embedded, weights, bias = rng.normal(size=(40, 3)), rng.normal(size=(3, 5)), rng.normal(size=5)
    exact = fit_transform(embedded, embedded @ weights + bias)
    assert exact.weights == pytest.approx(weights)
    assert exact.bias == pytest.approx(bias)
    noisy = embedded @ weights + bias + rng.normal(size=(40, 5))
    left = noisy - fit_transform(embedded, noisy)(embedded)
    assert embedded.T @ left == pytest.approx(np.zeros((3, 5)), abs=1e-9)
    assert left.sum(axis=0) == pytest.approx(np.zeros(5), abs=1e-9)


def test_untrained_embeddings_give_the_papers_trend() -> None:
    """var (1 - D'/(m-1)) without any training: the parameter experiment's line."""
    walks = random_walks(300, 30, 5)
    vectors, rng = walks.vectors, np.random.default_rng(1)
    variance = vectors.var(axis=0).mean()
    for dim in (60, 120):
        start = rng.normal(size=(300, dim))
        left = np.mean((fit_transform(start, vectors)(start) - vectors) ** 2)
        assert left == pytest.approx(variance * (1 - dim / 299), rel=0.05)


def test_sensitivity_and_laplace_noise() -> None:
    assert sensitivity(100, 6.0, 8.0) == pytest.approx(100.0)  # sqrt(100 (36 + 64))
    noise = perturb(np.zeros(20_000), 3.0, 0.5, np.random.default_rng(0))
    assert np.abs(noise).mean() == pytest.approx(6.0, rel=0.05)  # the mean of |Lap(b)| is b = lambda / epsilon
    assert np.mean(noise**2) == pytest.approx(2 * 36.0, rel=0.1)


def test_penalties_by_hand() -> None:
    points = np.array([[[0.0, 0.5], [0.0, 3.0], [12.0, -11.0]]])
    closed, side = disc((0.0, 0.0), 2.0, 1.0), box((-10.0, -10.0), (10.0, 10.0), 5.0)
    assert closed.at_points(points)[0].tolist() == pytest.approx([1.5, 0.0, 0.0])
    assert side.at_points(points)[0].tolist() == pytest.approx([0.0, 0.0, 3.0])
    assert float(total([closed, side], points)) == pytest.approx(1.5 + 5 * 3.0)
    printed = disc((0.0, 0.0), 2.0, 1.0, "as-printed").at_points(points)[0]
    assert float(printed[1]) == pytest.approx(1.0)  # positive outside as well
    assert closed.broken(points).tolist() == [[True, False, False]]
    assert side.broken(points).tolist() == [[False, False, True]]


def test_penalties_empty_the_disc() -> None:
    walks = random_walks(20, 30, 2)
    largest = sensitivity(30, np.hypot(20, 20), 0.0)
    options = options_of(100.0, iterations=150)
    closed = disc((0.0, 0.0), 4.0, 2.0)
    without = dpe(walks, largest, options)
    kept = dpe(walks, largest, options, [closed])
    assert closed.broken(without.points).mean() > 0.02
    assert closed.broken(kept.points).mean() < 0.002


def test_penalties_act_through_the_transform() -> None:
    walks = random_walks(60, 10, 2)
    closed = disc((0.0, 0.0), 4.0, 1.0)
    options = options_of(100.0, dim=8, iterations=200, learning_rate=0.05)
    without = dpe(walks, 1.0, options)
    kept = dpe(walks, 1.0, options, [closed])
    assert closed.broken(kept.points).mean() < 0.5 * closed.broken(without.points).mean()


@pytest.mark.parametrize("loss", ["mean-square", "absolute"])
def test_the_sum_of_all_vectors_never_changes(loss: str) -> None:
    """The centroid leak: who knows all records but one reads that one off the output, at any epsilon."""
    walks = random_walks(40, 20, 4)
    run = dpe(walks, sensitivity(20, 28.0, 0.0), options_of(0.01, loss=loss, precision="float64", iterations=50))
    assert np.abs(run.points - walks.points).max() > 0.1
    read_off = run.points.sum(axis=0) - walks.points[1:].sum(axis=0)
    assert read_off == pytest.approx(walks.points[0], abs=1e-9)


@pytest.mark.usefixtures("optimised")
def test_precision_that_the_result_needs() -> None:
    """The noise moves the result far more than bf16 products do, so float32, TF32 and bf16 all serve."""
    walks = random_walks(150, 20, 6)
    largest = sensitivity(20, 28.0, 0.0)

    def moved(precision: str, seed: int = 0) -> np.ndarray:
        run = dpe(walks, largest, options_of(1.0, precision=precision, learning_rate=5.0, iterations=30, seed=seed))
        return run.points - walks.points

    exact = moved("float64")
    size, by_noise = np.linalg.norm(exact), np.linalg.norm(moved("float64", 1) - exact)
    assert size > 0.1
    for precision, within in (("float32", 1e-4), ("tf32", 3e-3), ("bf16", 3e-2)):
        change = np.linalg.norm(moved(precision) - exact)
        assert change < within * size
        assert change < 0.05 * by_noise


def test_bad_options_name_the_remedy() -> None:
    walks = random_walks(10, 5, 0)
    with pytest.raises(InputError, match="dim="):
        options_of(1.0, dim=0)
    with pytest.raises(InputError, match="epsilon="):
        options_of(0.0)
    with pytest.raises(InputError, match="learning_rate="):
        options_of(1.0, learning_rate=-1.0)
    with pytest.raises(InputError, match="Unknown loss"):
        options_of(1.0, loss="cube")
    with pytest.raises(InputError, match="Unknown metric"):
        metric_of("hausdorff", 1.0)
    with pytest.raises(InputError, match="dim= must be left out"):
        dpe(walks, 1.0, Options(1.0, dim=3, metric=frechet(1.0)))
    with pytest.raises(InputError, match="at least two"):
        dpe(random_walks(1, 5, 0), 1.0, Options(1.0))


def test_different_lengths_need_a_metric_that_allows_it() -> None:
    padded = pad(*flat([1.0, 2.0, 3.0], [5.0]))
    with pytest.raises(InputError, match="different lengths"):
        dpe(padded, 1.0, Options(1.0))


def test_a_diverging_descent_stops_and_says_where() -> None:
    walks = random_walks(50, 20, 0)
    options = options_of(0.01, loss="sum-square", learning_rate=0.1, iterations=100)
    with pytest.raises(InputError, match=r"at iteration \d+; lower learning_rate="):
        dpe(walks, sensitivity(20, 28.0, 0.0), options)


def test_walks_stay_in_the_box() -> None:
    walks = random_walks(30, 200, 7).points
    assert np.abs(walks).max() <= HALF_SIDE
    assert np.linalg.norm(np.diff(walks, axis=1), axis=2).max() < 8.0
    assert walks.std() > 3.0
