def mean(values):
    """The arithmetic mean; of nothing there is none."""
    values = list(values)
    if not values:
        raise ValueError("no values")
    return sum(values) / len(values)


def median(values):
    """The middle one, or the mean of the two in the middle."""
    values = sorted(values)
    if not values:
        raise ValueError("no values")
    middle = len(values) // 2
    if len(values) % 2:
        return values[middle]
    return mean(values[middle - 1:middle + 1])
