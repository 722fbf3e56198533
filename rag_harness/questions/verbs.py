"""Verbs that pages tell their readers to do, and those whose object is worth asking for."""

from __future__ import annotations

TOLD_TO_DO = frozenset(
    """avoid access ask attach authenticate be bring build buy cancel cap choose click collect combine comment compare
    compute confirm configure consider contact count create customize customise debug define deploy do don't download
    edit enter evaluate export fetch file filter find fix force format forward get give have hide hold install
    instrument integrate invite keep know learn leave list look manage mark measure migrate mock note opt order pause pay
    pick place plug prefer press prevent print provide publish put query reduce register remember reopen replace report
    retry return review ring scan search see share sign simplify skip specify speed spend start stop subclass submit
    subscribe switch take talk tell test think track try tune turn understand unpack upgrade upload use verify view
    visit want wash wire withdraw write""".split()
)
ASKED_OF = frozenset(
    """accept add charge check contain control convert cost create default define delete depend
    determine disable emit enforce ensure exclude expose generate get give handle hold ignore indicate inherit inject
    lead limit match mean need offer omit override perform prevent produce protect provide raise receive record refer
    refuse reject remove render replace represent require reset return save say send set stand store suggest
    tell throw track translate trigger update validate wrap yield""".split()
)
