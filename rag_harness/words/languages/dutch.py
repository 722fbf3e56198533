"""The rules of Dutch."""

from __future__ import annotations

from rag_harness.words.languages.language_rules import LanguageRules

DUTCH = LanguageRules(
    code="nl",
    name="Dutch",
    stemmer="dutch",
    function_words="""
        aan achter al alle alleen alles als altijd ander andere ben bij binnen daar daarna dan dat de deze die dit doch
        doen door dus een eens elk elke en enkele er ergens even ge geen geweest haar had heb hebben hebt heeft hem het
        hier hij hoe hoelang hoeveel hun iemand iets ik in is ja je jij jou jouw jullie kan kun kunnen kunt maar me
        meer men met mij mijn moet moeten mag mogen na naar naast nadat niet niets nog nu of om omdat onder ons onze
        ook op over per reeds sinds te tegen ten ter terwijl tijdens toch toen tot tussen u uit uw van vanaf veel voor
        voordat waar waarom waarop wanneer want waren was wat we weer welk welke werd werden wie wij wil wilt word
        worden wordt zal ze zelf zich zij zijn zo zodra zonder zou zouden zullen graag mogelijk
    """,
    elided="",
    abbreviations="""
        afb art bijv blz bv ca cfr d.w.z dhr dr drs e.d enz etc evt excl fig i.p.v incl ing ir max mej mevr min mln mr
        mrd nl nr o.a prof resp st t.a.v t.b.v tel t.o.v vgl zgn jan feb mrt apr jun jul aug sep sept okt nov dec
    """,
    declining=r"(?:dat |het )?weet ik (?:het |dat )?(?:helaas )?niet|ik weet (?:het|dat) (?:helaas )?niet"
    r"|(?:dat|deze vraag|die vraag) kan ik (?:helaas )?niet (?:zeggen|beantwoorden)"
    r"|ik kan (?:dat|deze vraag|die vraag|uw vraag) (?:helaas )?niet beantwoorden",
    refusal="Dat weet ik niet.",
    about_context="De gegeven context beantwoordt de vraag niet.",
    how_long=r"hoe ?lang|hoe (?:snel|spoedig)|binnen welke (?:termijn|tijd)|binnen hoeveel",
    how_much=r"hoeveel (?:\w+ ){0,4}(?:kost|kosten|betaal|betalen|betaalt)|wat (?:kost|kosten|betaal)|hoe duur"
    r"|welke (?:\w+ )?(?:prijs|prijzen|kosten|tarieven)"
    r"|wat (?:is|zijn) (?:\w+ ){0,3}(?:prijs|prijzen|kosten|tarief|tarieven)",
    how_many=r"hoeveel|hoe (?:vaak|oud|ver|groot|hoog|zwaar|diep|breed)",
    when=r"wanneer|op welke (?:dag|datum)|hoe laat|sinds wanneer|tot wanneer|vanaf wanneer",
    durations=r"minu(?:ut|ten)|u(?:ur|ren)|(?:werk)?dag(?:en)?|nacht(?:en)?|we(?:ek|ken)|maand(?:en)?|ja(?:ar|ren)",
    money=r"euro|cent|dollar|gratis|kosteloos|procent",
    dates=r"januari|februari|maart|april|mei|juni|juli|augustus|september|oktober|november|december|maandag|dinsdag|"
    r"woensdag|donderdag|vrijdag|zaterdag|zondag",
    kind_words="kost kosten prijs prijzen tarief betalen datum dag tijd duurt",
)
