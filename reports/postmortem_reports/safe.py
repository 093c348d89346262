"""Text from logs, made harmless to show: no control, direction or invisible character leaves raw.

Log lines, job ids, cgroup paths and file names are written by others. What a terminal would obey
(escape sequences), what reverses the reading order (bidi controls) and what cannot be seen
(zero-width, tags, fillers) is replaced by its escape in ASCII, so that it shows itself.
HTML has its own escaping on top of this.
"""

import re

__all__ = ["clip", "code_fence", "code_span", "prose", "table_cell", "visible"]

# Unicode's general categories Cc, Cf, Cs, Zl, Zp, and the default-ignorable letters and marks that have no
# glyph (combining grapheme joiner, Hangul fillers, Khmer inherent vowels, variation selectors, braille blank).
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
_COMMON = {"\t": " ", "\n": " ", "\r": " "}


def visible(text: str, most: int | None = None) -> str:
    """One line of `text` with every unsafe character shown as its escape, clipped to `most` characters.

    Tabs and line ends become a blank each.
    """
    return _UNSAFE.sub(_escaped, text if most is None else clip(text, most))


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    if character in _COMMON:
        return _COMMON[character]
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def clip(text: str, most: int) -> str:
    """`text`, or its beginning with `…` when it is longer than `most` characters."""
    return text if len(text) <= most else text[: max(0, most - 1)].rstrip() + "…"


# What Markdown, GitHub's extensions of it (mentions, issues, emoji, math, autolinks), Jira and Slack leave
# alone: words, figures and plain punctuation. Everything else is shown as code.
_PLAIN = re.compile(
    r"[(“„]*[^\W_]+(?:[-./,:;'’–+]+[^\W_]+)*[-%)”“.,:;?’]*"  # words, `file/name`, 12:30, 3.9
    r"|[-+−±≤≥≈(]*\d[\d.,]*%?[).,:;]*"  # +3.9, ≈ 40 %
    r"|[–—=≤≥≈×±·%+−-]+[).,:;]*"
)
_LINKED = re.compile(r"www\.|[a-z]:/|:[a-z][^:]*:|[^\W\d_]\.[^\W\d_]", re.IGNORECASE)
_OPENS_LIST = re.compile(r"\d+[.)]$|[-+=]+$")
# A word; or what our own sentences put in backticks (a command, a file), blanks included.
_QUOTED = re.compile(r"(\(?)`([^`]{1,200})`([.,:;)]*)")
_WORDS = re.compile(r"\(?`[^`]{1,200}`[.,:;)]*(?=\s|$)|\S+")
_EDGES = re.compile(r"(\(?)(.*?)([.,:;]*\)?[.,:;]*)", re.DOTALL)


def prose(text: str) -> str:
    """A sentence for Markdown: words stay words; whatever could be syntax, a link or a mention becomes code."""
    words = _WORDS.findall(visible(text))
    shown = [_word(word) for word in words]
    if words and _OPENS_LIST.match(words[0]):
        shown[0] = code_span(words[0])
    return " ".join(shown)


def _word(word: str) -> str:
    if len(word) <= 60 and _PLAIN.fullmatch(word) and not _LINKED.search(word):
        return word
    if quoted := _QUOTED.fullmatch(word):
        return f"{quoted[1]}{code_span(quoted[2])}{quoted[3]}"
    edges = _EDGES.fullmatch(word)
    if edges is None or not edges[2] or "(" in edges[2]:  # `f(x)` keeps its parenthesis
        return code_span(word)
    return f"{edges[1]}{code_span(edges[2])}{edges[3]}"


def code_span(text: str) -> str:
    """Inline code that shows `text` as it is."""
    shown = visible(text).strip() or " "
    fence = "`" * (_longest_run(shown) + 1)
    blank = " " if shown[0] == "`" or shown[-1] == "`" else ""
    return f"{fence}{blank}{shown}{blank}{fence}"


def table_cell(markdown: str) -> str:
    """Markdown for a cell: a bar would end the cell (renderers differ on escaped ones), so it is shown broken."""
    return markdown.replace("|", "¦")


def code_fence(lines: list[str]) -> str:
    """A fenced block that holds `lines`; its fence is longer than any run of backticks inside."""
    shown = [visible(line) for line in lines]
    fence = "`" * max([3, *(_longest_run(line) + 1 for line in shown)])
    return "\n".join([f"{fence}text", *shown, fence])


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)
