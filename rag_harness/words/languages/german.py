"""The rules of German."""

from __future__ import annotations

from rag_harness.words.languages.language_rules import LanguageRules

GERMAN = LanguageRules(
    code="de",
    name="German",
    stemmer="german",
    function_words="""
        ab aber alle allem allen aller alles als also am an andere anderen anderer anderes auch auf aus außer bei beim
        bin bis bist da dabei dadurch dafür dagegen daher damit danach dann daran darauf daraus darf darfst darin darum
        das dass dasselbe davon davor dazu dein deine deinem deinen deiner dem den denn der deren des deshalb dessen die
        dies diese diesem diesen dieser dieses doch dort du durch dürfen ein eine einem einen einer eines einmal er es
        etwa etwas euch euer eure für gegen gegenüber gibt hab habe haben hat hatte hatten hier hin hinter hinzu ich ihm
        ihn ihnen ihr ihre ihrem ihren ihrer im in innerhalb ins ist ja je jede jedem jeden jeder jedes jetzt kann
        kannst kein keine keinem keinen keiner keines können könnte könnten machen man manche mehr mein meine meinem
        meinen meiner mich mir mit möchte muss müssen musst nach neben nicht nichts noch nun nur ob oder ohne pro schon
        sehr sein seine seinem seinen seiner seit selbst sich sie sind so sobald soll sollen sollte sondern sonst sowie
        über um und uns unser unsere unserem unseren unserer unter vom von vor wann war waren warum was weg weil welche
        welchem welchen welcher welches wem wen wenn wer werde werden wessen wie wieder wieviel will wir wird wo woher
        wohin wollen worden wurde wurden während zu zum zur zwar zwischen gilt gelten bekomme bekommen bekommt gehen
        geht bitte möglich gerne viel viele vielen
    """,
    elided="",
    abbreviations="""
        abb abs allg art bspw bzgl bzw ca d.h dr einschl etc evtl exkl gem ggf hl hr hrn inkl insb jh lt max min mind
        mio mrd mwst nr o.ä o.g prof s.o s.u sog st std str tel u.a u.u usw v.a vgl z.b z.t zzgl jan feb mär apr jun
        jul aug sep sept okt nov dez
    """,
    ordinals=True,
    declining=r"ich wei(?:ß|ss) (?:(?:es|das|dies|die antwort) )?(?:leider )?nicht"
    r"|(?:das|dies|es) wei(?:ß|ss) ich (?:leider )?nicht"
    r"|(?:das|dies|diese frage|die frage) kann ich (?:\w+ )?(?:leider )?nicht (?:sagen|beantworten)"
    r"|ich kann (?:das|dies|diese frage|die frage|ihre frage) (?:leider )?nicht (?:sagen|beantworten)",
    refusal="Das weiß ich nicht.",
    about_context="Der angegebene Kontext beantwortet die Frage nicht.",
    how_long=r"wie (?:lange|schnell|rasch|bald)|binnen welcher|innerhalb welcher",
    how_much=r"wie ?viel (?:\w+ ){0,6}(?:kostet|kosten|zahlen?|bezahlen?|zahlt)"
    r"|was (?:kostet|kosten|zahlt|zahle|zahlen|bezahle)|welche[nr]? (?:\w+ )?(?:preise?|kosten|gebühr(?:en)?)"
    r"|wie (?:teuer|hoch) (?:ist|sind) (?:\w+ ){0,4}(?:preise?|kosten|gebühr(?:en)?|kaution|versandkosten)",
    how_many=r"wie ?viele?|wie (?:oft|alt|weit|groß|hoch|schwer|tief|breit|lang)",
    when=r"wann|an welche[mn] tag|zu welche[rm] (?:datum|zeit|uhrzeit)|seit wann|bis wann|um wie viel uhr",
    durations=r"minuten?|stunden?|(?:werk|arbeits|kalender)?tage?n?|nächten?|nacht|wochen?|monate?n?|jahre?n?",
    money=r"euro|cent|franken|dollar|kostenlos|kostenfrei|gratis|umsonst|prozent",
    dates=r"januar|februar|märz|april|mai|juni|juli|august|september|oktober|november|dezember|(?:mon|diens|donners|frei|"
    r"sams|sonn)tags?|mittwochs?|uhr",
    kind_words="kostet kosten preis preise gebühr gebühren zahlt zahlen zahle bezahlen datum tag uhrzeit zeit dauert",
)
