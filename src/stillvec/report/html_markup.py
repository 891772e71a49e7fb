"""HTML elements: every text is escaped, except values of type `Html`."""

import html
import re
from collections.abc import Iterable, Sequence

_VOID = {"meta", "br", "wbr"}
_NOT_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


class Html(str):
    """Text that is already markup."""

    __slots__ = ()


def escape(value: object) -> Html:
    """Escape a value; characters not allowed in HTML (control characters, lone surrogates) become U+FFFD."""
    return value if isinstance(value, Html) else Html(html.escape(plain(value), quote=True))


def plain(value: object) -> str:
    """Replace characters that UTF-8 or HTML cannot represent."""
    return _NOT_TEXT.sub("\ufffd", str(value))


def element(name: str, /, *children: object, **attributes: object) -> Html:
    """`element("td", word, class_="word")`; None or False omits an attribute, True writes only its name."""
    pairs = []
    for key, value in attributes.items():
        if value is not None and value is not False:
            label = key.rstrip("_").replace("_", "-")
            pairs.append(f" {label}" if value is True else f' {label}="{escape(value)}"')
    opening = f"<{name}{''.join(pairs)}>"
    return Html(opening if name in _VOID else f"{opening}{join(children)}</{name}>")


def join(parts: Iterable[object], between: str = "") -> Html:
    return Html(between.join(escape(part) for part in parts if part is not None))


def word(text: object) -> Html:
    """A word or a name, isolated from the text direction around it."""
    return element("bdi", text)


def set_name(text: object) -> Html:
    """The name of a set, with line breaks allowed after punctuation."""
    parts = re.split(r"(?<=[-_/:,])", plain(text))
    return element("bdi", join(parts, str(element("wbr"))), class_="name")


def lead(*text: object) -> Html:
    """The paragraph that introduces a section."""
    return element("p", *text, class_="lead")


def note(*text: object) -> Html:
    """A remark below a table or figure."""
    return element("p", *text, class_="note")


def fold(summary: object, *content: object) -> Html:
    """Content that is shown after a click."""
    return element("details", element("summary", summary), *content)


def plural(count: int, one: str, many: str | None = None) -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def join_names(names: Sequence[str]) -> str:
    """a, b and c"""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]])) if names else ""
