import numpy as np
import pytest

from wayveil.core.scope import Scope
from wayveil.evaluation import project
from wayveil.measurement import measure
from wayveil.privacy.noise import SeededNoise
from wayveil.rules.motion import ground_lengths, motion_of
from wayveil.rules.tolerances import ELLIPSOID_RATIO
from wayveil.simulate import simulate_trajectories
from wayveil.synthesis.place.caps import fastest_mps, ground_stretch, within_caps
from wayveil.synthesis.place.track_columns import Tracks
from wayveil.workflow.synthesize import synthesize


def scope(south=10.0, north=10.05, **caps):
    box = {"name": "test", "south": south, "west": 20.0, "north": north, "east": 20.06, "timezone": "UTC"}
    return Scope.model_validate({**box, "caps": caps})


def tracks(*tracks_of_xt):
    """Tracks along a street: (metres, seconds) of each point."""
    offsets = np.r_[0, np.cumsum([len(one) for one in tracks_of_xt])]
    x_m, t_s = np.concatenate([np.array(one, float) for one in tracks_of_xt]).T
    return Tracks(offsets, x_m, np.zeros(len(x_m)), 1e9 + t_s)


def test_what_lies_beyond_a_cap_is_cut_off():
    made = tracks(
        [(0, 0), (900, 60), (2500, 120), (2600, 180)],  # too long
        [(0, 0), (10, 1000), (20, 1900), (30, 5000)],  # takes too long
        [(0, 0), (500, 60), (1500, 600)],  # neither
        [(0, 0), (8000, 400), (9000, 500)],  # too long from the first step on
        [(0, 0)],
    )
    cut = within_caps(made, scope(length_km=2, duration_h=0.5))
    assert np.diff(cut.offsets).tolist() == [2, 2, 3, 2, 1]
    assert cut.x_m[:7].tolist() == [0, 900, 0, 10, 0, 500, 1500]
    x_m, seconds = cut.x_m[8], cut.t_utc[8] - cut.t_utc[7]
    assert 1900 < x_m <= 2000 and seconds == int(seconds) and x_m / seconds == pytest.approx(20)
    assert within_caps(made, scope(length_km=50, duration_h=3)) is made


def test_projected_metres_are_longer_on_the_ground_in_a_tall_box():
    assert ground_stretch(scope()) == pytest.approx(ELLIPSOID_RATIO, rel=1e-3)
    tall = scope(43.0, 51.0, speed_kmh=100)
    widest = np.cos(np.radians(43)) / np.cos(np.radians(47))
    assert ground_stretch(tall) == pytest.approx(ELLIPSOID_RATIO * widest)
    assert fastest_mps(tall) == pytest.approx(100 / 3.6 / ELLIPSOID_RATIO / widest)
    across = scope(-5.0, 15.0)  # widest at the equator
    assert ground_stretch(across) == pytest.approx(ELLIPSOID_RATIO / np.cos(np.radians(5)))


def test_no_synthetic_trajectory_exceeds_the_caps(small_city):
    caps = {"points": 20, "length_km": 2.0, "duration_h": 0.1, "speed_kmh": 25.0}
    tight = Scope.model_validate({**small_city.scope.model_dump(), "caps": caps})
    data = simulate_trajectories(small_city, 500, seed=3)
    release = measure(data, tight, epsilon=5, unit="trajectory", noise=SeededNoise(5))
    made = synthesize(release, n=400, seed=1, estimator="bayes").trajectories
    motion = motion_of(made, tight)
    length_m, gap_s = ground_lengths(motion, np)
    found = project(made, tight)
    assert len(made) == 400 and np.diff(made.offsets).max() <= 20 and np.diff(made.offsets).min() >= 2
    assert (found.t_utc[found.last] - found.t_utc[found.first]).max() <= 360
    assert np.add.reduceat(np.r_[0.0, length_m], made.offsets[:-1]).max() <= 2000
    assert (length_m[motion.joins] * 3.6 / gap_s[motion.joins]).max() <= 25
