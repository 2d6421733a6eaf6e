"""People instead of trips: at most five trips of each person are used, and the ledger adds up what was spent."""

import tempfile
from pathlib import Path

import wayveil
from wayveil.errors import BudgetError
from wayveil.simulate import simulate_city, simulate_trajectories


def main() -> None:
    city = simulate_city(size_km=(3, 3))
    rides = simulate_trajectories(city, n=600)
    with tempfile.TemporaryDirectory() as folder:
        ledger = wayveil.Ledger(Path(folder) / "ledger.sqlite")
        promise = {"epsilon": 2, "unit": "user", "max_per_user": 5, "dataset": "rides", "ledger": ledger}
        release = wayveil.measure(rides, city.scope, **promise)
        print(wayveil.describe(release))
        try:
            wayveil.measure(rides, city.scope, **promise)
        except BudgetError as refusal:
            print(f"Refused, as it should be: {refusal}")
        else:
            raise AssertionError("the second measurement was not refused")
    synthetic = wayveil.synthesize(release, n=200, seed=1)
    print(f"{len(synthetic.trajectories)} synthetic trips that belong to nobody")


if __name__ == "__main__":
    main()
