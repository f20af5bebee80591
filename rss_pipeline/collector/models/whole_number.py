"""Whole numbers of JSON, which has one type of numbers: 3.0 is a whole one."""


def whole_number(value: object) -> object:
    """A float that is whole as an int; anything else as it is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
