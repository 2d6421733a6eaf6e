"""`custom`: a function of (x, y, t) as a rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from wayveil.core.scope import Scope
from wayveil.core.week import WEEK_S
from wayveil.errors import RuleError
from wayveil.rules.motion import Array, Motion, module_of
from wayveil.rules.rule import Rule


@final
@dataclass(frozen=True, eq=False)
class Custom(Rule):
    """penalty = the user's function of (x, y, t); a point breaks the rule where the function is above zero.

    x and y are metres east and north of the scope's south-west corner, and t is the time in seconds since Monday 00:00,
    local time. The function is written with jax.numpy and returns one value >= 0 for each point.
    """

    function: Callable[[Array, Array, Array], Array]
    name: str = "custom"
    text: str = "A custom rule: the function's value must be zero."

    def describe(self) -> str:
        """Return the rule in plain words."""
        return self.text

    def penalty(self, motion: Motion) -> Array:
        """Return the function's value, at least zero."""
        xp = module_of(motion)
        if motion.x_m.shape[0] == 0:
            return xp.zeros(0)
        values = self.function(motion.x_m, motion.y_m, motion.week_s)
        values = np.asarray(values, np.float64) if xp is np else values
        return xp.maximum(values, 0.0)

    def violations(self, motion: Motion) -> np.ndarray:
        """Return the points where the function is above zero."""
        return np.asarray(self.penalty(motion)) > 0

    def binds_routes(self) -> bool:
        """Return True: candidate trips that break the rule are not used; routes cannot know what it forbids."""
        return True


def custom(
    function: Callable[[Array, Array, Array], Array], scope: Scope, name: str = "custom", text: str | None = None
) -> Custom:
    """Return a rule from a function, after testing it on points across the scope and the week.

    Parameters
    ----------
    function
        A function of (x, y, t), written with jax.numpy: metres east and north of the scope's south-west corner, and
        seconds since Monday 00:00. It returns one value per point, zero where the rule is obeyed. Its values and
        gradients must be finite.
    text
        The description of the rule.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from wayveil import read_scope
    >>> from wayveil.rules import custom
    >>> def far_from_west(x, y, t):
    ...     return jnp.maximum(0, 500 - x)
    >>> custom(far_from_west, read_scope("demo-city"), text="Stay 500 m from the western edge.").describe()
    'Stay 500 m from the western edge.'

    Privacy
    -------
    Free (rules are public).
    """
    import jax
    import jax.numpy as jnp

    rng = np.random.default_rng(0)
    share = np.concatenate([rng.random((250, 3)), np.array([[0, 0, 0], [0.5, 0.5, 0.5], [1, 1, 0.999]])])
    x, y, t = (jnp.asarray(share[:, i] * size) for i, size in enumerate((scope.width_m, scope.height_m, WEEK_S)))
    try:
        values = function(x, y, t)
        shape = getattr(values, "shape", None)
        if shape != x.shape:
            raise RuleError(f"Rule '{name}': the function must return one value for each point, as in 0 * x.")
        if values.dtype.kind == "b":
            raise RuleError(
                f"Rule '{name}': the function returns booleans; return a number for each point instead, for example "
                "jnp.where(wrong, 1.0, 0.0), or better the distance from obeying in metres."
            )
        gradients = jax.grad(lambda *at: jnp.sum(function(*at)), argnums=(0, 1, 2))(x, y, t)
    except RuleError:
        raise
    except Exception as error:
        why = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise RuleError(f"Rule '{name}': the function fails ({why}); write it with jax.numpy, for arrays.") from None
    if not all(bool(jnp.all(jnp.isfinite(array))) for array in (values, *gradients)):
        raise RuleError(
            f"Rule '{name}': the function or its gradient is not finite somewhere in the scope; "
            "guard square roots and divisions with jnp.where."
        )
    return Custom(function, name) if text is None else Custom(function, name, text)
