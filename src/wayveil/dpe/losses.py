"""How residuals r_i = q(D', T'_i) - target_i are combined into one number (the paper's "target function").

The paper prints the equation without a norm, so it can be read in several ways. Each reading is a pair: the loss L(r),
and its slopes c_i = dL/dr_i, which are all that the kernel needs. The readings were compared on simulated data; see
docs/explanation/reproduction.md.
"""

from typing import Any

from wayveil.errors import InputError

LOSSES = ("mean-square", "absolute", "signed", "sum-square")


def check_loss(loss: str) -> str:
    """The name itself, or an error that lists the names."""
    if loss not in LOSSES:
        raise InputError(f"Unknown loss '{loss}'; choose one of {', '.join(LOSSES)}.")
    return loss


def loss_and_slopes(residuals: Any, loss: str) -> tuple[Any, Any]:
    """L(r) and dL/dr_i for residuals of shape (m,).

    - `mean-square`: L = mean of (r_i / m)^2. The default: it neither diverges nor collapses at learning rate 0.1.
    - `absolute`: L = sum of |r_i|. Larger steps; the constraints experiment needs them.
    - `signed`: L = sum of -r_i, the equation taken literally. The trajectories diverge.
    - `sum-square`: L = sum of r_i^2. Diverges with the paper's learning rates.
    """
    import jax.numpy as jnp

    m = float(residuals.shape[0])
    if loss == "mean-square":
        return jnp.mean((residuals / m) ** 2), (2.0 / m**2) * (residuals / m)
    if loss == "absolute":
        return jnp.sum(jnp.abs(residuals)), jnp.sign(residuals)
    if loss == "signed":
        return -jnp.sum(residuals), -jnp.ones_like(residuals)
    return jnp.sum(residuals**2), 2.0 * residuals
