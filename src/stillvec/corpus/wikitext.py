"""Wikitext to prose: patterns for what is well formed, the parser `mwparserfromhell` for what is left tangled.

Most of an article is references, templates and tables. Patterns take them away from the inside outwards, several
times faster than a parser would build their tree; a line that still has mark-up then goes through the parser, where
the extra `wikipedia` is installed. The tests hold the prose against the parser's own.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from functools import partial

_HIDDEN = (  # tags whose content is no prose
    "ref|references|gallery|math|chem|ce|timeline|source|syntaxhighlight|score|imagemap|table|pre|hiero|graph|"
    "templatedata|mapframe|poll|inputbox|categorytree|section|indicator|style|noinclude|includeonly|maplink"
)
_REMOVED = re.compile(
    rf"<!--.*?(?:-->|\Z)|<(?:{_HIDDEN})\b[^<>]*/>|<({_HIDDEN})\b[^<>]*>|__[A-Z]+__", re.DOTALL | re.IGNORECASE
)
_TEMPLATE = re.compile(r"\{\{([^{}]*(?:[{}](?![{}])[^{}]*)*)\}\}")
_TABLE = re.compile(r"\{\|[^{|]*(?:(?:\|(?!\})|\{(?!\|))[^{|]*)*\|\}")
_LINK = re.compile(r"\[\[([^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*)\]\]")
_OUTSIDE = re.compile(r"\[(?:https?:|ftp:|mailto:|//)[^\s\]]{0,2000}\s{0,100}([^\]]{0,2000})\]")
_NO_PROSE = re.compile(r"^(?:=.*=\s*|\s*[|!{}].*|-{4,}|[*#:;]*\s*)$", re.MULTILINE)
_ITEM = ("*", "#", ";", ":")
_STOPS = tuple(".!?…।。！？؟۔")
_CLOSING = "\"'”’»)]"
_APPENDIX = re.compile(  # sections of references and pointers, to the next heading of their height
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
_TIDY: tuple[tuple[re.Pattern[str], str], ...] = (  # what taking things away leaves behind
    (re.compile(r"[ \t\xa0\u2009\u202f]+"), " "),
    (re.compile(r"\((?:\s*[;,:])+\s*"), "("),
    (re.compile(r"(?<![\s;,:])[\s;,:]*[;,:]\s*\)"), ")"),
    (re.compile(r" ?\(\s*\)| ?\[\s*\]| ?“\s*”"), ""),
    (re.compile(r" +([,.;:!?)])(?!\w)"), r"\1"),
    (re.compile(r"\( +"), "("),
)
_KEPT_TEMPLATES: dict[str, Callable[[list[str]], str]] = {  # those that stand for words in the sentence
    "lang": lambda parts: parts[1] if len(parts) > 1 else "",
    "nowrap": lambda parts: parts[0],
    "convert": lambda parts: " ".join(parts[:2]),
    "cvt": lambda parts: " ".join(parts[:2]),
    "as of": lambda parts: "as of " + "-".join(parts),
    "quote": lambda parts: f"\n{parts[0]}\n",
    "blockquote": lambda parts: f"\n{parts[0]}\n",
    "mdash": lambda parts: " – ",
    "ndash": lambda parts: "–",
    "spaced ndash": lambda parts: " – ",
    "snd": lambda parts: " – ",
    "'": lambda parts: "'",
    "sup": lambda parts: parts[0],
    "sub": lambda parts: parts[0],
    "abbr": lambda parts: parts[0],
    "circa": lambda parts: "c. " + "-".join(parts),
    "c.": lambda parts: "c. " + "-".join(parts),
    "frac": lambda parts: "/".join(parts[-2:]),
}
_LONGEST_LABEL = 30  # characters of a paragraph that is no sentence
_LONGEST_PARSED = 10_000  # characters of a line; the parser takes four times as long for twice as many
_MOST_ROUNDS = 12  # of nesting


def plain_paragraphs(wikitext: str, media: frozenset[str]) -> Iterator[str]:
    """The prose of an article, a paragraph at a time; `media` are the namespaces whose links show no text."""
    text = _without_hidden(wikitext)
    text = _innermost(_LINK, partial(_link, media), text)  # before templates, which part their arguments with | too
    text = _innermost(_TEMPLATE, _template, text)
    text = _innermost(_TABLE, lambda match: "\n\n", text)
    text = _APPENDIX.sub("\n\n", text)
    text = _NO_PROSE.sub("", _BLOCK.sub("\n\n", _OUTSIDE.sub(r"\1", text)))
    for block in text.split("\n\n"):
        for line in _join_lines(block):
            prose = _prose(line)
            if _is_prose(prose, line):
                yield prose


def _without_hidden(text: str) -> str:
    """Without comments, hidden tags and what they hold; a tag that nobody closes stays, and is looked for once."""
    kept: list[str] = []
    begin = at = 0
    unclosed: set[str] = set()
    while found := _REMOVED.search(text, at):
        at, tag = found.end(), (found[1] or "").lower()
        if tag:
            closed = None if tag in unclosed else re.compile(rf"</{tag}\s*>", re.IGNORECASE).search(text, at)
            if closed is None:
                unclosed.add(tag)
                continue
            at = closed.end()
        kept.append(text[begin : found.start()])
        begin = at
    return "".join([*kept, text[begin:]])


def _join_lines(block: str) -> list[str]:
    """The lines of a block: wikitext shows a single line break as a space, but for list items."""
    lines: list[str] = []
    for line in block.split("\n"):
        if lines and line.strip() and not line.startswith(_ITEM) and not lines[-1].startswith(_ITEM):
            lines[-1] += " " + line
        else:
            lines.append(line)
    return lines


def _is_prose(prose: str, line: str) -> bool:
    """Items of lists are prose only if they are sentences; the rest only if it is more than a label."""
    label = line.startswith(_ITEM) and not line.startswith(":")
    return prose.rstrip(_CLOSING).endswith(_STOPS) or (not label and len(prose) > _LONGEST_LABEL)


def _innermost(pattern: re.Pattern[str], replacement: Callable[[re.Match[str]], str], text: str) -> str:
    """Replace again and again: what was nested becomes innermost in its turn."""
    for _ in range(_MOST_ROUNDS):
        text, number = pattern.subn(replacement, text)
        if not number:
            break
    return text


def _template(match: re.Match[str]) -> str:
    name, *parts = match[1].split("|")
    show = _KEPT_TEMPLATES.get(name.strip().lower())
    positional = [part.strip() for part in parts if "=" not in part]
    return show(positional) if show and positional else ""


def _link(media: frozenset[str], match: re.Match[str]) -> str:
    target, bar, shown = match[1].partition("|")
    target = target.strip()
    namespace, colon, _ = target.partition(":")
    if colon and namespace:
        if namespace.strip().lower() in media or _MEDIA.match(target):
            return ""
        if not bar and _INTERWIKI.match(target):
            return ""
    return shown if bar else target.lstrip(":")


def _parse_line(line: str) -> str:
    """What the parser makes of a line that the patterns could not untangle."""
    if len(line) > _LONGEST_PARSED:
        return line
    try:
        import mwparserfromhell
    except ModuleNotFoundError:  # then its brackets go, and what they hold stays
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
