"""A small non-negative least-squares solver. Importing scipy's takes longer than all fits of a run together."""

import numpy as np
from numpy.typing import NDArray


def nonnegative_fit(gram: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """argmin over c ≥ 0 of ½ cᵀGc − rᵀc, G positive definite: Lawson and Hanson's active sets."""
    scale = 1 / np.sqrt(np.diag(gram))  # the same problem with ones on the diagonal
    gram, right = gram * scale[:, None] * scale, right * scale
    tolerance = 1e-12 * max(float(np.abs(right).max()), 1e-300)
    solution, free = np.zeros(len(right)), np.zeros(len(right), bool)
    for _ in range(10 * len(right)):
        slope = np.where(free, -np.inf, right - gram @ solution)
        if slope.max() <= tolerance:
            break
        free[slope.argmax()] = True
        while True:
            unconstrained = np.zeros(len(right))
            unconstrained[free] = np.linalg.solve(gram[np.ix_(free, free)], right[free])
            below = free & (unconstrained <= 0)
            if not below.any():
                break
            # Go towards the unconstrained solution until the first coordinate reaches zero, and fix it there.
            shares = np.where(below, solution / np.maximum(solution - unconstrained, 1e-300), np.inf)
            solution = solution + shares.min() * (unconstrained - solution)
            free &= solution > tolerance
            free[shares.argmin()] = False
        solution = unconstrained
    return solution * scale
