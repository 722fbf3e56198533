"""Words that refer to something elsewhere. A question with such a word cannot be asked alone."""

from __future__ import annotations

import re

_WORDS = (
    r"it|its|it's|itself|they|them|their|theirs|he|she|him|his|her|this|these|those|such|former|latter|both"
    r"|either|neither|above|below|following|here|there|other|another|none|same|said|respective(?:ly)?|ones"
    r"|earlier example|example|now|therefore|thus|hence|instead|too|again|already|meanwhile|anyway|accordingly"
    r"|two kinds|as follows|as shown|in (?:general|turn)|for now|by default|so far|still"
    r"|(?:after|before|by) (?:that|then)"
)
_THAT = (
    r"that(?= (?:is|was|way|case|page|point|time|day|order|one|amount|fee|value|means)\b)|(?:the|this|that|which) one"
    r"|(?:if|when|once|unless|of|for|in|to|on|allow) that"
)
_PLACES = (
    r"previous(?:ly)? (?:section|step|example|page)|(?:all|the|these) (?:two|three|four|five|six)"
    r"|the (?:rest|list|chart|table|diagram|figure|hour|first|second|third|last|note|page|section|answer|question"
    r"|reason|difference|point|idea|result|problem|issue|rule|step|case|exception)(?! of\b)"
)
POINTING = re.compile(rf"\b(?:{_WORDS}|{_THAT}|{_PLACES})\b", re.I)
"""Words that mean nothing without the text before them."""
