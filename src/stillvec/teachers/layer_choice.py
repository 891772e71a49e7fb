"""The layers of a teacher by name: `last`, `4`, `-2`, `4-6`, `last3`, `all`, `0+last3`."""

from stillvec.errors import UsageError


def parse_layers(layer: str, depth: int, where: str = "setting 'layer'") -> tuple[int, ...]:
    """`last`, `3`, `-2` (the last but one), `3-6`, `last3` (the last three), `all`, several joined by `+`; 0 is the
    input embeddings.
    """
    text = str(layer).strip()
    if "+" in text:
        return tuple(sorted({each for part in text.split("+") for each in parse_layers(part, depth, where)}))
    if text.startswith("last") and text[4:].isdigit() and int(text[4:]):
        return tuple(range(max(0, depth + 1 - int(text[4:])), depth + 1))
    if text == "last":
        return (depth,)
    if text == "all":
        return tuple(range(depth + 1))
    first, dash, last = text.partition("-") if not text.startswith("-") else (text, "", "")
    try:
        low = int(first)
        low, high = (depth + 1 + low if low < 0 else low), (int(last) if dash else None)
    except ValueError:
        raise UsageError.expected("a number, 'last', 'all' or a range such as 3-6", repr(layer), where=where) from None
    high = low if high is None else high
    if not 0 <= low <= high <= depth:
        raise UsageError.expected(f"a layer of the teacher, 0 (input) to {depth} (last)", repr(layer), where=where)
    return tuple(range(low, high + 1))
