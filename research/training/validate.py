"""Simulated validation: divergence of the Bayesian estimate and of the network, by ε_v and by kind of city."""

import numpy as np


def validate(weights, held_out: list) -> list[dict]:
    """One row for each held-out sample and field: JSD before and after, at 1 and 4 cells, and calibration."""
    import jax
    import jax.numpy as jnp
    from denoiser import divergences, log_share, predict

    weights = jax.tree.map(lambda a: jnp.asarray(a, jnp.float32), weights)

    @jax.jit
    def score(fields, constants):
        occupancy, ends = predict(weights, fields, constants)
        fields = fields.astype(jnp.float32)
        results = []
        for truth, bayes, log_p in ((9, 3, occupancy), (14, 13, ends)):
            before = log_share(fields[..., bayes], 0.0, fields[..., 4])
            results.append([divergences(fields[..., truth], before), divergences(fields[..., truth], log_p), before])
        return results, (occupancy, ends)

    rows = []
    for kind, number, epsilon, mapped, fields, constants in held_out:
        results, shares = score(fields[None], constants[None])
        for name, truth, (before, after, log_bayes), log_p in zip(
            ("occupancy", "end_points"), (9, 14), results, shares
        ):
            before, after = (np.asarray(part)[:, 0].astype(float) for part in (before, after))
            rows.append({
                "field": name, "kind": kind, "city": number, "epsilon_v": round(0.4 * epsilon, 4), "mapped": mapped,
                "hours": number % 3 == 2,
                "bayes": before[0], "network": after[0], "bayes_400m": before[1], "network_400m": after[1],
                "bayes_kl": before[3], "network_kl": after[3],
                "bayes_top_half_holds": top_half_holds(np.asarray(log_bayes)[0], fields[..., truth].astype(float)),
                "top_half_holds": top_half_holds(np.asarray(log_p)[0], fields[..., truth].astype(float)),
            })  # fmt: skip
    return rows


def top_half_holds(log_p: np.ndarray, truth: np.ndarray) -> float:
    """Share of the truth in the densest cells that hold half of the predicted mass: 0.5 when calibrated."""
    p = np.exp(log_p.astype(float)).ravel()
    order = np.argsort(-p)
    ahead = np.cumsum(p[order]) <= 0.5 * p.sum()
    return float(truth.ravel()[order][ahead].sum() / max(truth.sum(), 1e-12))


def summarise(rows: list[dict]) -> str:
    """Tables in plain text: by field, map and ε_v, then by kind."""
    lines = []
    for field in ("occupancy", "end_points"):
        lines.append(
            f"{field:12s} map  eps_v   bayes  network   400m: bayes network   KL: bayes network"
            "  top half: bayes network  worse"
        )
        for mapped in (False, True):
            for epsilon in sorted({r["epsilon_v"] for r in rows}):
                part = [r for r in rows if r["field"] == field and r["mapped"] == mapped and r["epsilon_v"] == epsilon]
                if part:
                    lines.append(f"{'':12s} {'yes' if mapped else 'no':4s} {epsilon:7.4f} " + _means(part))
        for hours in (False, True):
            for mapped in (False, True):
                part = [r for r in rows if r["field"] == field and r["hours"] == hours and r["mapped"] == mapped]
                if part:
                    name = "hours" if hours else "trips"
                    lines.append(f"{name:12s} {'yes' if mapped else 'no':4s}   all " + _means(part))
        for kind in sorted({r["kind"] for r in rows}):
            for mapped in (False, True):
                part = [r for r in rows if r["field"] == field and r["kind"] == kind and r["mapped"] == mapped]
                lines.append(f"{kind:12s} {'yes' if mapped else 'no':4s}   all " + _means(part))
    return "\n".join(lines) + "\n"


def _means(part: list[dict]) -> str:
    mean = {k: np.mean([r[k] for r in part]) for k in part[0] if isinstance(part[0][k], float) and k != "epsilon_v"}
    worse = sum(r["network"] > r["bayes"] + 0.002 for r in part)
    return (
        f"{mean['bayes']:7.4f} {mean['network']:8.4f} {mean['bayes_400m']:13.4f} {mean['network_400m']:7.4f}"
        f" {mean['bayes_kl']:12.3f} {mean['network_kl']:7.3f}"
        f" {mean['bayes_top_half_holds']:15.3f} {mean['top_half_holds']:7.3f} {worse:3d}/{len(part)}"
    )
