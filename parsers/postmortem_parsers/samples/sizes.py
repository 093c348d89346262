"""Sizes in columns of text, as tools print them, to whole bytes and the size of one printed step.

Units are powers of 1024 whatever their spelling (docker, free, the kernel). `max`, `none`, `unlimited` are no number.
"""

from __future__ import annotations

import polars as pl

from postmortem.units import GIB, KIB, MIB

__all__ = ["NO_VALUE", "SIZE", "with_sizes"]

SIZE = r"[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,2})?\s?(?:[kKmMgGtTpP]i?[bB]?|[bB]|[bB]ytes)?"
"""A size, for embedding in patterns: no groups, no anchors."""
NO_VALUE = r"^(?:|-|max|none|unlimited|infinity|n/?a|\[n/?a\]|nan|null|\+?inf|\[not supported\])$"
"""Cells (in small letters) that say that there is no number; not an error."""

_PARTS = r"^([0-9]+)(\.[0-9]+)?(?:[eE]([+-]?[0-9]{1,2}))?\s*([kKmMgGtTpP]?)(i[bB]?|[bB]|[bB]ytes)?$"
_FACTORS = {"": 1, "k": KIB, "m": MIB, "g": GIB, "t": 1 << 40, "p": 1 << 50}
_LARGEST = (1 << 63) - 1


def with_sizes(frame: pl.DataFrame, text: str, unit: str, exact: str | None = None) -> pl.DataFrame:
    """`frame` with `value` and `value_ulp` (Int64, bytes; null where `text` is no size).

    `unit` names the column that holds the bytes of one step of a number without a unit of its own, `exact` the one
    that is true where such numbers are not rounded to that unit.
    """
    parts = frame.select(
        whole=pl.col(text).str.strip_chars().str.extract(_PARTS, 1),
        fraction=pl.col(text).str.strip_chars().str.extract(_PARTS, 2).fill_null(""),
        exponent=pl.col(text).str.strip_chars().str.extract(_PARTS, 3).cast(pl.Int64, strict=False),
        prefix=pl.col(text).str.strip_chars().str.extract(_PARTS, 4).str.to_lowercase(),
        suffix=pl.col(text).str.strip_chars().str.extract(_PARTS, 5),
        unit=pl.col(unit).cast(pl.Int64),
        exact=pl.col(exact) if exact else pl.lit(value=False),
    ).with_columns(own=(pl.col("prefix") != "") | pl.col("suffix").is_not_null())
    factor = (
        pl.when(pl.col("own"))
        .then(pl.col("prefix").replace_strict(_FACTORS, default=1, return_dtype=pl.Int64))
        .otherwise(pl.col("unit"))
    )
    # Decimal exponent of the last printed digit.
    last = pl.col("exponent").fill_null(0) - (pl.col("fraction").str.len_chars().cast(pl.Int64) - 1).clip(lower_bound=0)
    plain = (pl.col("fraction") == "") & pl.col("exponent").is_null()
    integer = pl.col("whole").cast(pl.Int64, strict=False).fill_null(_LARGEST)  # 2^64 - 1 and longer: no limit
    number = (pl.col("whole") + pl.col("fraction")).cast(pl.Float64, strict=False)
    scaled = number * (10.0 ** pl.col("exponent").fill_null(0).cast(pl.Float64)) * factor.cast(pl.Float64)
    step = 10.0 ** last.cast(pl.Float64) * factor.cast(pl.Float64)
    sizes = parts.select(
        value=pl.when(pl.col("whole").is_null())
        .then(None)
        .when(plain & (integer <= _LARGEST // factor))
        .then(integer * factor)
        .when(scaled >= float(1 << 62))
        .then(pl.lit(_LARGEST))
        .otherwise(scaled.clip(upper_bound=float(1 << 62)).round().cast(pl.Int64)),
        value_ulp=pl.when(pl.col("whole").is_null())
        .then(None)
        .when(plain & ((factor == 1) | (~pl.col("own") & pl.col("exact"))))
        .then(0)
        .otherwise(step.clip(upper_bound=float(1 << 62)).round().cast(pl.Int64)),
    )
    return frame.hstack(sizes)
