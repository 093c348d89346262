import unicodedata

from hypothesis import given
from hypothesis import strategies as st
from reports.hostile import ALL, RAW

from postmortem_reports.safe import clip, code_fence, code_span, prose, visible


@given(st.text())
def test_no_control_format_or_surrogate_character_is_left(text):
    left = {unicodedata.category(character) for character in visible(text)}
    assert not left & {"Cc", "Cf", "Cs", "Zl", "Zp"}


def test_every_hidden_character_of_unicode_is_replaced():
    hidden = [
        chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) in {"Cc", "Cf", "Cs", "Zl", "Zp"}
    ]
    assert [hex(ord(character)) for character in hidden if visible(character) == character] == []


@given(
    st.text(st.characters(categories=["L", "N", "P", "S", "Zs"], exclude_characters="\u115f\u1160\u3164\uffa0\u2800"))
)
def test_text_that_shows_itself_is_left_as_it_is(text):
    assert visible(text) == text


def test_what_is_replaced_can_be_read():
    assert visible("a\x1b[31mb\u202ec\td\x85\U000e0041") == "a\\x1b[31mb\\u202ec d\\x85\\U000e0041"


def test_a_long_text_is_clipped_before_anything_else():
    assert visible("x" * 10_000_000, 5) == "xxxx…"
    assert clip("abc", 3) == "abc"


def test_words_and_figures_stay_prose():
    for text in (
        "Killed at 02:26:24 UTC: 77.5 GiB (52 %) of the pool, 24 buffers; not covered.",
        "≈ 40 % – well-known file/name, it’s 3.9 GiB ± 0.1 GiB.",
        "Why? Because +77.5 GiB, −3 and -8.0 to 0.0.",
    ):
        assert prose(text) == text


def test_what_could_be_markup_a_link_or_a_mention_becomes_code():
    assert prose("free_remaining=0, see (run.log:12).") == "`free_remaining=0`, see (`run.log:12`)."
    assert prose("@octocat #12 http://x.example/a www.x") == "`@octocat` `#12` `http://x.example/a` `www.x`"
    assert prose("a :bomb: *b* <c> f(x)") == "a `:bomb`: `*b*` `<c>` `f(x)`"
    assert prose("1. no list") == "`1.` no list"
    assert prose("- no list") == "`-` no list"


def test_what_a_sentence_of_ours_quotes_is_one_piece_of_code():
    assert prose("save `date -u; cat x` (`a|b`), then `c") == "save `date -u; cat x` (`a|b`), then `` `c ``"


def test_code_holds_backticks():
    assert code_span("a`b``c") == "```a`b``c```"
    assert code_span("`a") == "`` `a ``"
    assert code_fence(["```", "`````` x"]).startswith("```````text\n")


def test_nothing_raw_is_left_in_any_dress():
    for dress in (visible, prose, code_span, lambda text: code_fence([text]).replace("\n", "")):
        assert not set(dress(ALL)) & RAW
