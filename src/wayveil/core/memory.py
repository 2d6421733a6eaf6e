"""The memory that this machine has left."""


def available_bytes() -> float:
    """Memory that a new array may take; infinite where the system does not report it."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return float(line.split()[1]) * 1024
    except OSError:
        pass
    return float("inf")
