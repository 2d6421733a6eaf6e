"""How residuals r_i = q(D', T'_i) - target_i become one number, Eq. (target function).

The equation is printed without a norm. Each reading is a pair: the loss L(r), and its slopes c_i = dL/dr_i, which is
all that the kernel needs. What the readings do was found on simulated data; see docs/explanation/reproduction.md.
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

    - `mean-square`: L = mean of (r_i / m)^2. The settled reading: it neither diverges nor collapses with lr 0.1.
    - `absolute`: L = sum of |r_i|. Larger steps; the constraints experiment needs them.
    - `signed`: L = sum of -r_i, Eq. (target function) to the letter. The trajectories fly apart.
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
