"""Canonical JSON does not depend on the encoder that writes it, nor a root on the program that computes it."""

from __future__ import annotations

import hashlib
import json
import sys

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from octweb.decisions.hashing import _canonical_of_any, canonical, merkle_root
from tests.conftest import ROOT

sys.path.insert(0, str(ROOT / "checker"))
import check_decisions

TEXTS = st.text(max_size=6) | st.sampled_from(["ä", "\ue000", "\U0001f600", "\ud800", "\x00", "\x7f", '"\\/', "\u2028"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@settings(deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(TEXTS, VALUES, max_size=6))
def test_canonical_json_of_both_encoders_is_equal(record):
    text = canonical(record)
    assert text == _canonical_of_any(record)
    assert json.loads(text) == record


def test_names_are_sorted_by_utf16():
    assert canonical({"\ue000": 1, "\U0001f600": 2, "b": [], "a": {}}) == '{"a":{},"b":[],"\U0001f600":2,"\ue000":1}'


def test_merkle_root_equals_that_of_the_checker():
    commitments = [hashlib.sha256(bytes([n])).hexdigest() for n in range(70)]
    for n in range(1, 71):
        hashes = [bytes.fromhex(text) for text in commitments[:n]]
        assert merkle_root(commitments[:n]) == check_decisions.merkle_root(hashes).hex()
