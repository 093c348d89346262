"""The page's content security policy: nothing from anywhere, and of scripts and styles only those with our hashes."""

import base64
import hashlib

__all__ = ["content_security_policy", "digest"]


def digest(text: str) -> str:
    """`sha256-…` of an inline script's or style's text, as the policy and `integrity` write it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def content_security_policy(scripts: list[str], styles: list[str], *, script_host: str = "") -> str:
    """The policy for these inline texts; `script_host` is the one further place that a script may come from.

    The empty style is allowed because plotly makes an empty style element and fills it through the object model.
    """
    script_sources = " ".join([*(f"'{digest(text)}'" for text in scripts), *([script_host] if script_host else [])])
    style_sources = " ".join(f"'{digest(text)}'" for text in [*styles, ""])
    return (
        f"default-src 'none'; script-src {script_sources}; style-src {style_sources}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
