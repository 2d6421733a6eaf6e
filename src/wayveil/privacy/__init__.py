"""The narrow door: what is protected, what it costs, who has spent what, and the noise itself."""
