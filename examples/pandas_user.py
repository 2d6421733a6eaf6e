"""A data frame in, a data frame out: columns with names of their own, times in the city's time zone."""

import tempfile
from pathlib import Path

import pandas as pd

import wayveil
from wayveil.simulate import simulate_city, simulate_trajectories


def private_frame(city) -> pd.DataFrame:
    """What a fleet's database might export."""
    rides = simulate_trajectories(city, n=300)
    points = rides.offsets[1:] - rides.offsets[:-1]
    when = pd.to_datetime(rides.t_utc, unit="s", utc=True).tz_convert(city.scope.timezone).tz_localize(None)
    ride = pd.Series(range(len(rides))).repeat(points).to_numpy()
    return pd.DataFrame({"ride": ride, "latitude": rides.lat, "lng": rides.lon, "when": when})


def main() -> None:
    city = simulate_city(size_km=(3, 3))
    frame = private_frame(city)
    with tempfile.TemporaryDirectory() as folder:
        synthesizer = wayveil.Synthesizer(
            scope=city.scope,
            epsilon=1,
            unit="trajectory",
            dataset="rides",
            ledger=Path(folder) / "ledger.sqlite",
            traj_id="ride",
            time="when",
            timezone=city.scope.timezone,
        ).fit(frame)
    # Without a number, sample() uses the noisy count. The time format is an argument; it is never copied from the data.
    synthetic = synthesizer.sample(200, seed=1, times="datetime", timezone=city.scope.timezone)
    print(synthetic.head())
    print(f"{synthetic['ride'].nunique()} synthetic rides with {len(synthetic)} points")
    assert list(synthetic.columns) == list(frame.columns)
    assert str(synthetic["when"].dt.tz) == city.scope.timezone


if __name__ == "__main__":
    main()
