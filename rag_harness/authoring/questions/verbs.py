"""Verbs: base forms, third persons, verbs of instructions to readers, verbs with an object worth asking for."""

from __future__ import annotations

from rag_harness.authoring.questions.inflection import third
from rag_harness.authoring.questions.wordlists import word_set

BASES = word_set(
    """
    accept add affect allow apply arrive ask attach begin belong block book bring call capture carry cause change
    charge check close come compare connect consist contain control convert copy cost count cover create decide
    default define delete deliver demonstrate depend describe determine disable display emit enable end enforce ensure
    exclude exist expect expire expose extend fail fall fire fit follow generate get give go grow handle happen help
    hold ignore implement include increase indicate inherit inject keep last lead leave let limit live load log look
    lose make match mean merge modify move need offer omit open override own pass pay perform point prevent print
    produce propagate protect provide raise reach read receive record refer refuse register reject release remain
    remove render replace represent request require reset resolve respect restore return run save say select send
    serve set ship show skip specify split stand start stay stop store stream suggest support survive take tell throw
    track translate treat trigger try turn update use validate wait work wrap write yield
    """
)
THIRD = {third(base): base for base in sorted(BASES)}
"""From the third person to the base form."""
TOLD_TO_DO = word_set(
    """
    access air ask attach authenticate avoid be bring brush build buy cancel cap charge choose clean click collect
    combine comment compare compute configure confirm consider contact count create customise customize debug define
    deploy descale do don't download dry edit empty enter evaluate export fetch file fill filter find fix force format
    forward get give hang have hide hold install instrument integrate invite keep know learn leave list look manage
    mark measure migrate mock note opt order pause pay pick place plug prefer press prevent print provide publish put
    query reduce register remember reopen replace report retry return review ring rinse scan seal search see share
    sign simplify skip specify speed spend start stop subclass submit subscribe switch take talk tell test think track
    try tune turn understand unpack unplug upgrade upload use verify view visit wait want wash wipe wire withdraw
    write
    """
)
ASKED_OF = word_set(
    """
    accept add charge check contain control convert cost create default define delete depend determine disable emit
    enforce ensure exclude expose generate get handle hold ignore indicate inherit inject lead limit match mean
    need offer omit override perform prevent produce protect provide raise receive record refer refuse reject remove
    render replace represent require reset return save say set stand store suggest tell throw track translate
    trigger update validate wrap yield
    """
)
