"""From noisy answers to distributions that trips can be drawn from."""
