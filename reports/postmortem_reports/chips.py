"""Text from logs as HTML that shows itself: characters that cannot be seen or that reorder become labelled chips.

Jinja escapes what could be markup. Escaping leaves alone what a reader is fooled by: controls, bidi overrides,
zero-width characters, tags and fillers. They are shown as `U+202E`, with the character's name on hover. What is
too long is cut, and says so.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator

from markupsafe import Markup, escape

__all__ = ["LONGEST", "chips", "plain", "short"]

LONGEST = 600
"""Characters of one text that the page shows; the rest is cut with a note."""

# Letters and marks that Unicode gives no glyph, beside the categories Cc, Cf, Co, Cs, Zl and Zp.
_NO_GLYPH = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
_PLAIN_TEXT = re.compile(r"[ -~]*")
_MARKS_IN_A_ROW = 3  # more combining marks than any language stacks would paint over neighbouring lines


def chips(text: object, most: int = LONGEST) -> Markup:
    """`text` escaped for HTML, each hidden character as a chip, cut after `most` characters with a note."""
    whole = str(text)
    shown = whole[:most]
    body = escape(shown) if _PLAIN_TEXT.fullmatch(shown) else Markup("").join(_pieces(shown, _chip))
    if len(whole) <= most:
        return body
    return body + Markup('<span class="cut"> … cut, {} characters in all</span>').format(f"{len(whole):,}")


def plain(text: object, most: int = LONGEST) -> str:
    """The same as text without markup, for attributes and charts: hidden characters as `⟨U+202E⟩`."""
    whole = str(text)
    shown = "".join(_pieces(whole[:most], _bracketed))
    return shown if len(whole) <= most else f"{shown}… (cut, {len(whole):,} characters in all)"


def short(text: object, most: int) -> str:
    """A label of at most `most` characters for a figure whose table has the whole text."""
    shown = plain(str(text)[: 4 * most], 4 * most)
    return shown if len(shown) <= most else shown[: most - 1].rstrip() + "…"


def _pieces(text: str, chip: Callable[[str], str]) -> Iterator[str]:
    marks = 0
    for character in text:
        category = unicodedata.category(character)
        marks = marks + 1 if category in {"Mn", "Me"} else 0
        if character == "\t":
            yield " "
        elif category in _HIDDEN_CATEGORIES or character in _NO_GLYPH or marks > _MARKS_IN_A_ROW:
            yield chip(character)
        else:
            yield character


def _name(character: str) -> str:
    return unicodedata.name(character, "control character" if ord(character) < 0xA0 else "unnamed character")


def _chip(character: str) -> Markup:
    return Markup('<span class="chip" title="{}">U+{}</span>').format(_name(character).lower(), f"{ord(character):04X}")


def _bracketed(character: str) -> str:
    return f"⟨U+{ord(character):04X}⟩"
