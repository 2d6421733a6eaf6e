"""Privacy: what is protected, what it costs, what has been spent, and the mechanism that adds the noise."""
