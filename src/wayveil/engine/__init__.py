"""Where the work runs. An engine is two methods: add exact sums over a source, and map a function over pieces."""
