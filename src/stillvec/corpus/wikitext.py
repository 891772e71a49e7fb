"""Wikitext to prose: regular expressions for well-formed markup, the parser `mwparserfromhell` for the rest.

Most of an article is references, templates and tables. Regular expressions remove them from the inside out, several
times faster than a parser. A line that still contains markup then goes through the parser, if the extra `wikipedia` is
installed. Tests compare the prose with the parser's own.
"""

import html
import re
from collections.abc import Callable, Iterator
from functools import partial

_HIDDEN = (  # tags whose content is not prose
    "ref|references|gallery|math|chem|ce|timeline|source|syntaxhighlight|score|imagemap|table|pre|hiero|graph|"
    "templatedata|mapframe|poll|inputbox|categorytree|section|indicator|style|noinclude|includeonly|maplink"
)
_REMOVED = re.compile(
    rf"<!--.*?(?:-->|\Z)|<(?:{_HIDDEN})\b[^<>]*/>|<({_HIDDEN})\b[^<>]*>|__[A-Z]+__", re.DOTALL | re.IGNORECASE
)
_TEMPLATE = re.compile(r"\{\{([^{}]*(?:[{}](?![{}])[^{}]*)*)\}\}")
_TABLE = re.compile(r"\{\|[^{|]*(?:(?:\|(?!\})|\{(?!\|))[^{|]*)*\|\}")
_LINK = re.compile(r"\[\[([^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*)\]\]")
_EXTERNAL_LINK = re.compile(r"\[(?:https?:|ftp:|mailto:|//)[^\s\]]{0,2000}\s{0,100}([^\]]{0,2000})\]")
_NOT_PROSE = re.compile(r"^(?:=.*=\s*|\s*[|!{}].*|-{4,}|[*#:;]*\s*)$", re.MULTILINE)
_ITEM = ("*", "#", ";", ":")
_STOPS = tuple(".!?…।。！？؟۔")
_CLOSING = "\"'”’»)]"
_APPENDIX = re.compile(  # sections of references and links, up to the next heading of the same level
    r"^==\s*(?:references|external links|further reading|see also|bibliography|notes|footnotes|sources|"
    r"citations|works cited|notes and references|einzelnachweise|weblinks|literatur|siehe auch|références|"
    r"liens externes|voir aussi|bibliographie|referencias|enlaces externos|véase también)\s*==\s*$"
    r".*?(?=^==[^=]|\Z)",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_BREAK = re.compile(r"<br\b[^<>]*>", re.IGNORECASE)
_BLOCK = re.compile(r"<(?:p|li|div|blockquote|/p|/li|/div|/blockquote)\b[^<>]*>", re.IGNORECASE)
_UNBALANCED = re.compile(r"\[\[|\]\]|\{\{|\}\}")
_EMPHASIS = re.compile(r"'{2,}")
_INTERWIKI = re.compile(r"[a-z]{2,3}(?:-[a-z]+)*:")
_MEDIA = re.compile(
    r"[^:|]+:[^|]+\.(?:jpe?g|png|svg|gif|tiff?|og[gvam]|web[mp]|djvu|pdf|mid|wav|mp3)\s*$", re.IGNORECASE
)
_TIDY: tuple[tuple[re.Pattern[str], str], ...] = (  # what removals leave behind
    (re.compile(r"[ \t\xa0\u2009\u202f]+"), " "),
    (re.compile(r"\((?:\s*[;,:])+\s*"), "("),
    (re.compile(r"(?<![\s;,:])[\s;,:]*[;,:]\s*\)"), ")"),
    (re.compile(r" ?\(\s*\)| ?\[\s*\]| ?“\s*”"), ""),
    (re.compile(r" +([,.;:!?)])(?!\w)"), r"\1"),
    (re.compile(r"\( +"), "("),
)
_TEXT_TEMPLATES: dict[str, Callable[[list[str]], str]] = {  # templates that are part of the sentence
    "lang": lambda parts: parts[1] if len(parts) > 1 else "",
    **dict.fromkeys(("nowrap", "sup", "sub", "abbr"), lambda parts: parts[0]),
    **dict.fromkeys(("convert", "cvt"), lambda parts: " ".join(parts[:2])),
    **dict.fromkeys(("quote", "blockquote"), lambda parts: f"\n{parts[0]}\n"),
    **dict.fromkeys(("mdash", "spaced ndash", "snd"), lambda parts: " – "),
    **dict.fromkeys(("circa", "c."), lambda parts: "c. " + "-".join(parts)),
    "ndash": lambda parts: "–",
    "'": lambda parts: "'",
    "as of": lambda parts: "as of " + "-".join(parts),
    "frac": lambda parts: "/".join(parts[-2:]),
}
_MAX_LABEL = 30  # characters of a paragraph that is not a sentence
_MAX_PARSED = 10_000  # characters of a line; the time of the parser is quadratic
_MAX_DEPTH = 12  # of nesting


def plain_paragraphs(wikitext: str, media: frozenset[str]) -> Iterator[str]:
    """Yield the paragraphs of an article; `media` are the namespaces whose links show no text."""
    text = _remove_hidden(wikitext)
    text = _replace_nested(_LINK, partial(_link, media), text)  # before templates, which also separate arguments by |
    text = _replace_nested(_TEMPLATE, _template, text)
    text = _replace_nested(_TABLE, lambda match: "\n\n", text)
    text = _APPENDIX.sub("\n\n", text)
    text = _NOT_PROSE.sub("", _BLOCK.sub("\n\n", _EXTERNAL_LINK.sub(r"\1", text)))
    for block in text.split("\n\n"):
        for line in _join_lines(block):
            prose = _prose(line)
            if _is_prose(prose, line):
                yield prose


def _remove_hidden(text: str) -> str:
    """Remove comments and hidden tags with their content; a tag that is never closed stays, and is searched once."""
    pieces: list[str] = []
    begin = at = 0
    unclosed: set[str] = set()
    while match := _REMOVED.search(text, at):
        at, tag = match.end(), (match[1] or "").lower()
        if tag:
            closed = None if tag in unclosed else re.compile(rf"</{tag}\s*>", re.IGNORECASE).search(text, at)
            if closed is None:
                unclosed.add(tag)
                continue
            at = closed.end()
        pieces.append(text[begin : match.start()])
        begin = at
    return "".join([*pieces, text[begin:]])


def _join_lines(block: str) -> list[str]:
    """The lines of a block: wikitext shows a single line break as a space, except in lists."""
    lines: list[list[str]] = []  # adding to a string again and again would take quadratic time
    for line in block.split("\n"):
        if lines and line.strip() and not line.startswith(_ITEM) and not lines[-1][0].startswith(_ITEM):
            lines[-1].append(line)
        else:
            lines.append([line])
    return [" ".join(pieces) for pieces in lines]


def _is_prose(prose: str, line: str) -> bool:
    """Whether a line is a sentence or, outside of lists, longer than a label."""
    label = line.startswith(_ITEM) and not line.startswith(":")
    return prose.rstrip(_CLOSING).endswith(_STOPS) or (not label and len(prose) > _MAX_LABEL)


def _replace_nested(pattern: re.Pattern[str], replacement: Callable[[re.Match[str]], str], text: str) -> str:
    """Replace matches from the inside out."""
    for _ in range(_MAX_DEPTH):
        text, n_replaced = pattern.subn(replacement, text)
        if not n_replaced:
            break
    return text


def _template(match: re.Match[str]) -> str:
    name, *parts = match[1].split("|")
    show = _TEXT_TEMPLATES.get(name.strip().lower())
    positional = [part.strip() for part in parts if "=" not in part]
    return show(positional) if show and positional else ""


def _link(media: frozenset[str], match: re.Match[str]) -> str:
    target, bar, shown = match[1].partition("|")
    target = target.strip()
    namespace, colon, _ = target.partition(":")
    is_media = namespace.strip().lower() in media or _MEDIA.match(target)
    if colon and namespace and (is_media or (not bar and _INTERWIKI.match(target))):
        return ""
    return shown if bar else target.lstrip(":")


def _parse_line(line: str) -> str:
    """Let the parser strip a line that still contains markup."""
    if len(line) > _MAX_PARSED:
        return line
    try:
        import mwparserfromhell
    except ModuleNotFoundError:  # the caller removes the brackets
        return line
    return str(mwparserfromhell.parse(line).strip_code())


def _prose(line: str) -> str:
    line = line.lstrip("*#:; \t")
    if "<" in line:
        line = _TAG.sub("", _BREAK.sub(" ", line))
    if _UNBALANCED.search(line):
        line = _UNBALANCED.sub(" ", _parse_line(line))
    if "''" in line:
        line = _EMPHASIS.sub("", line)
    if "&" in line:
        line = html.unescape(line)
    for pattern, replacement in _TIDY:
        line = pattern.sub(replacement, line)
    return line.strip()
