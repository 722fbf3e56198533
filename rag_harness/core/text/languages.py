"""Rules of each language but English: stop words, stems, abbreviations, kinds of questions and "I don't know"."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

__all__ = ["ENGLISH", "LANGUAGES", "LanguageRules", "has_rules", "rules_of"]


_NUMBER = r"\d"
_CURRENCY = r"[€$£]\s?\d|\d\s?(?:€|eur\b|usd\b|gbp\b|chf\b|%)"
_CLOCK = r"\b\d{1,2}[:.]\d{2}\b|\b(?:19|20)\d\d\b|\b\d{1,2}[./]\d{1,2}\."


@dataclass(frozen=True)
class LanguageRules:
    """The rules of a language. Lists are words separated by blanks; ``|`` separates phrases.

    Attributes:
        code: two letters, ISO 639-1.
        name: its English name.
        stemmer: the name of its Snowball stemmer.
        function_words: words that carry no topic, in lower case.
        elided: prefixes before an apostrophe that are not words of their own: the "l" of "l'assurance".
        abbreviations: words whose dot does not end a sentence, without that dot, in lower case.
        ordinals: whether a dot behind a number makes it an ordinal, as in "3. März".
        declining: phrases that say "I don't know", as patterns.
        refusal: the embedded reader's words for it; it adds ``about_context`` where it has a context.
        how_long, how_much, how_many, when: phrases that ask for a duration, money, a number, a date.
        durations, money, dates: words of the answers.
        kind_words: words of a question that only name the kind of its answer: "kostet", "Preis".
    """

    code: str
    name: str
    stemmer: str
    function_words: str
    elided: str
    abbreviations: str
    declining: str
    refusal: str
    about_context: str
    how_long: str
    how_much: str
    how_many: str
    when: str
    durations: str
    money: str
    dates: str
    kind_words: str = ""
    ordinals: bool = False

    @cached_property
    def stop_words(self) -> frozenset[str]:
        """The function words."""
        return frozenset(self.function_words.split())

    @cached_property
    def declines(self) -> re.Pattern[str]:
        """What an answer says that declines."""
        return re.compile(rf"\b(?:{self.declining})\b", re.IGNORECASE)

    @cached_property
    def _elision(self) -> re.Pattern[str] | None:
        return re.compile(rf"(?:{'|'.join(self.elided.split())})['’]", re.IGNORECASE) if self.elided else None

    @cached_property
    def _shortened(self) -> re.Pattern[str]:
        known = "|".join(re.escape(each) for each in self.abbreviations.split())
        return re.compile(rf"(?:(?<!\w)(?:{known}|[^\W\d_])|[.](?:\s?)[^\W\d_])[.]$", re.IGNORECASE)

    @cached_property
    def kinds(self) -> tuple[tuple[str, re.Pattern[str], re.Pattern[str]], ...]:
        """The kinds of answers as ``terms.answer_kind`` names them: how one asks for each, and how it is answered."""
        duration = rf"{_NUMBER}[^.;]{{0,20}}\b(?:{self.durations})\b"
        return tuple(
            (name, re.compile(rf"\b(?:{asked})\b", re.I), re.compile(answered, re.I))
            for name, asked, answered in (
                ("a duration", self.how_long, duration),
                ("an amount of money", self.how_much, rf"{_CURRENCY}|\b(?:{self.money})\b"),
                ("a number", self.how_many, _NUMBER),
                ("a date or time", self.when, rf"{_CLOCK}|\b(?:{self.dates})\b|{duration}"),
            )
        )

    def stem(self, word: str) -> str:
        """Return the stem of a word in lower case, by Snowball's algorithm."""
        import Stemmer

        # A new stemmer each time: it costs 0.3 µs, and a stemmer is not thread-safe.
        return str(Stemmer.Stemmer(self.stemmer, 0).stemWord(word))

    def plain(self, word: str) -> str:
        """Return a word in lower case without an elided one before it; empty for a stop word."""
        word = word.lower()
        if self._elision is not None:
            word = self._elision.sub("", word, count=1) or word
        return "" if word in self.stop_words else word

    def goes_on(self, before: str, following: str) -> bool:
        """Return whether a sentence goes on behind the dot at the end of ``before``: "z. B. Öl", "3. März".

        A single letter is an abbreviation. An ordinal stands before its noun; before a function word, the number ended
        the sentence.
        """
        if not before.endswith("."):
            return False
        if self._shortened.search(before[-16:]):
            return True
        first = following.split(maxsplit=1)[0].strip("\"'“”„»«()*_.,:;").lower() if following.split() else ""
        is_ordinal = self.ordinals and _ORDINAL.search(before[-5:]) is not None
        return is_ordinal and first[:1].isalpha() and first not in self.stop_words

    def goes_on_at(self, text: str, start: int, border: int) -> bool:
        """Return whether a sentence of ``text`` that begins behind ``start`` goes on behind ``border``."""
        before = text[max(start, border - _LOOKED_AT) : border].rstrip()
        return self.goes_on(before, text[border : border + _LOOKED_AT])


_LOOKED_AT = 80
_ORDINAL = re.compile(r"(?<![\d.,])\d{1,2}\.$")


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


FRENCH = LanguageRules(
    code="fr",
    name="French",
    stemmer="french",
    function_words="""
        à afin ai ainsi alors après as au aucun aucune auquel aura aussi autre autres aux avant avec avez avoir avons
        car ce ceci cela celle celles celui ces cet cette ceux chaque chez ci combien comme comment d dans de depuis
        des dès doit doivent donc dont du durant elle elles en encore entre es est et étaient était été être eu eux
        faire fait faut fois font ici il ils j je jusqu jusque l la là laquelle le lequel les lesquelles lesquels leur
        leurs lors lorsque lui m ma mais me même mes moi moins mon n ne ni non nos notre nous on ont ou où par parce
        pas pendant peu peut peuvent peux plus pour pourquoi pouvez puis puisque qu quand que quel quelle quelles quels
        qui quoi s sa sans se sera seront ses si soit son sont sous suis sur t ta tant te tes ton tous tout toute
        toutes très tu un une va vais vers veux voici voilà vos votre vous y possible
    """,
    elided="l d j m n s t c qu jusqu lorsqu puisqu",
    abbreviations="""
        art av boul cf chap dr etc env ex fig hab max min mlle mm mme no nos p.ex pp réf st ste tél vol janv févr avr
        juil sept oct nov déc
    """,
    declining=r"je (?:ne )?(?:le )?sais pas|je l['’]ignore|je ne suis pas en mesure de répondre|je ne peux pas "
    r"(?:y )?répondre",
    refusal="Je ne sais pas.",
    about_context="Le contexte fourni ne répond pas à la question.",
    how_long=r"combien de temps|en combien de|dans quel délai|quel(?:le)? est (?:le délai|la durée)|pendant combien",
    how_much=r"combien (?:\w+[ -]){0,4}(?:coûte(?:nt)?|payer|paie|paye)|combien coûte(?:nt)?|quel(?:s)? (?:est|sont) "
    r"(?:\w+ ){0,3}(?:prix|tarifs?|frais|coûts?)|à quel prix",
    how_many=r"combien",
    when=r"quand|à quelle (?:date|heure)|depuis quand|jusqu['’]à quand|quel jour",
    durations=r"minutes?|heures?|jours?|nuits?|semaines?|mois|ans?|années?",
    money=r"euros?|centimes?|francs?|dollars?|gratuite?s?|gratuitement|pour cent",
    dates=r"janvier|février|mars|avril|mai|juin|juillet|août|septembre|octobre|novembre|décembre|lundi|mardi|mercredi|"
    r"jeudi|vendredi|samedi|dimanche|\d+ ?h\b",
    kind_words="coûte coûtent coût prix tarif tarifs frais payer date jour heure délai durée temps",
)


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


ITALIAN = LanguageRules(
    code="it",
    name="Italian",
    stemmer="italian",
    function_words="""
        a ad agli ai al alcuni alcune alla alle allo altra altre altri altro anche ancora avere c che chi ci cioè come
        con contro così cosa cui d da dagli dai dal dalla dalle dallo degli dei del dell della delle dello dentro deve
        devo devono di dopo dov dove durante e è ed entro era erano essere fa fino fra già gli ha hai hanno ho i il in
        io l la le lei li lo loro lui ma me mentre mi mia mie miei mio molto ne nè né negli nei nel nella nelle nello
        nessun nessuna no noi non nostra nostre nostri nostro o ogni oppure per perché però più po poi posso possono può
        prima qual quale quali quando quanta quante quanti quanto quel quella quelle quelli quello questa queste questi
        questo qui se sei senza si sia sono sopra sotto sta stato su sua sue sugli sui sul sulla sulle sullo suo suoi
        tra tu tua tuo tutta tutte tutti tutto un una uno va vi voi vostra vostro possibile
    """,
    elided="l un d dell all dall nell sull c quest quell dov com cos",
    abbreviations="""
        art artt avv ca cap cfr dott dr dr.ssa ecc es fig gg ing max min n nr p.es pag pagg prof sig sig.ra sigg tel
        vol gen feb mar apr mag giu lug ago set sett ott nov dic
    """,
    declining=r"non (?:lo )?so|non saprei|non sono in grado di rispondere|non posso rispondere",
    refusal="Non lo so.",
    about_context="Il contesto fornito non risponde alla domanda.",
    how_long=r"(?:per |in |entro )?quanto tempo|quanto dura(?:no)?|qual è (?:il termine|la durata)|entro quando",
    how_much=r"quanto (?:\w+ ){0,4}(?:costa(?:no)?|pago|pagare|paga)|quanto costa(?:no)?|qual è (?:\w+ ){0,3}"
    r"(?:prezzo|tariffa|costo)|quali sono (?:\w+ ){0,3}(?:prezzi|tariffe|costi)|a che prezzo",
    how_many=r"quant[oaie]",
    when=r"quando|(?:in|a) (?:che|quale) (?:data|ora|giorno)|da quando|fino a quando",
    durations=r"minut[oi]|or[ae]|giorn[oi]|nott[ei]|settiman[ae]|mes[ei]|ann[oi]",
    money=r"euro|centesim[oi]|franch[oi]|dollar[oi]|gratis|gratuit[oaie]|gratuitamente|per cento",
    dates=r"gennaio|febbraio|marzo|aprile|maggio|giugno|luglio|agosto|settembre|ottobre|novembre|dicembre|lunedì|"
    r"martedì|mercoledì|giovedì|venerdì|sabato|domenica",
    kind_words="costa costano costo prezzo prezzi tariffa pagare data giorno ora termine tempo dura durata",
)


PORTUGUESE = LanguageRules(
    code="pt",
    name="Portuguese",
    stemmer="portuguese",
    function_words="""
        a à ainda algum alguma algumas alguns ao aos após aquela aquelas aquele aqueles aquilo as às até cada com como
        contra cuja cujo da das de dela dele deles depois desde deve devem devo do dos durante e é ela elas ele eles em
        entre era eram essa essas esse esses esta está estão estar estas este estes estou eu foi foram há isso isto já
        lhe lhes mais mas me mesmo meu meus minha minhas muito na não nas nem no nos nós nossa nossas nosso nossos num
        numa o onde os ou para pela pelas pelo pelos pode podem por porque posso qual quais quando quanta quantas quanto
        quantos que quem são se seja sem ser seu seus sob sobre sou sua suas também te tem têm tenho ter teu teve toda
        todas todo todos tu tua um uma umas uns vai você vocês vos possível
    """,
    elided="",
    abbreviations="""
        aprox art arts av cap dr dra etc ex fig incl máx mín n.º p.ex pág págs prof profa sr sra srs tel vol jan fev
        mar abr jun jul ago set out nov dez
    """,
    declining=r"(?:eu )?não (?:o )?sei|desconheço (?:a resposta|essa informação)|não (?:posso|consigo) responder",
    refusal="Não sei.",
    about_context="O contexto fornecido não responde à pergunta.",
    how_long=r"quanto tempo|em quanto tempo|qual é (?:o prazo|a duração)|em que prazo|quanto (?:demora|dura)m?",
    how_much=r"quanto (?:\w+ ){0,4}(?:custam?|pago|pagar|paga)|quanto custam?"
    r"|qual é (?:\w+ ){0,3}(?:preço|tarifa|custo)|quais são (?:\w+ ){0,3}(?:preços|tarifas|custos)|que preço",
    how_many=r"quant[oa]s?",
    when=r"quando|(?:em|a) que (?:data|hora|horas|dia)|desde quando|até quando",
    durations=r"minutos?|horas?|dias?|noites?|semanas?|m[eê]s(?:es)?|anos?",
    money=r"euros?|cêntimos?|centavos?|reais|dólares|grátis|gratuit[oa]s?|por cento",
    dates=r"janeiro|fevereiro|março|abril|maio|junho|julho|agosto|setembro|outubro|novembro|dezembro|segunda-feira|"
    r"terça-feira|quarta-feira|quinta-feira|sexta-feira|sábados?|domingos?",
    kind_words="custa custam custo preço preços tarifa pagar data dia hora prazo tempo demora dura",
)


SPANISH = LanguageRules(
    code="es",
    name="Spanish",
    stemmer="spanish",
    function_words="""
        a al algo algún alguna algunas alguno algunos ante antes aquel aquella aunque cada como cómo con contra cual
        cuál cuales cuáles cuando cuándo cuanta cuánta cuantas cuántas cuanto cuánto cuantos cuántos de debe deben debo
        del desde después donde dónde durante e el él ella ellas ellos en entre era eran es esa esas ese eso esos esta
        está estaba están estas este esto estos estoy fue fueron ha había han hasta hay he la las le les lo los más me
        mi mis mismo mucho muy nada ni no nos nosotros nuestra nuestras nuestro nuestros o os otra otras otro otros
        para pero poco por porque pueda puede pueden puedo pues que qué quien quién quienes se sea según ser si sí sin
        sobre son soy su sus también tan te tengo tiene tienen todo todos tras tu tú tus un una unas uno unos usted
        ustedes va vosotros voy y ya yo posible
    """,
    elided="",
    abbreviations="""
        admón aprox art arts avda cap dña dr dra ej etc fig incl máx mín núm p.ej pág págs sr sra sres srta tel ud uds
        vol ene feb mar abr jun jul ago sept oct nov dic
    """,
    declining=r"no (?:lo )?sé|desconozco (?:la respuesta|ese dato|esa información)|no puedo responder",
    refusal="No lo sé.",
    about_context="El contexto proporcionado no responde a la pregunta.",
    how_long=r"cuánto (?:tiempo|tardan?|tarda|dura|duran)|en cuánto tiempo|en qué plazo"
    r"|cuál es (?:el plazo|la duración)",
    how_much=r"cuánto (?:\w+ ){0,4}(?:cuestan?|vale|pago|pagar|paga)|cuánto cuestan?|qué precio|cuál(?:es)? (?:es|son) "
    r"(?:\w+ ){0,3}(?:precios?|tarifas?|costes?|costos?|gastos)",
    how_many=r"cuánt[oa]s?",
    when=r"cuándo|(?:en|a) qué (?:fecha|hora|día)|desde cuándo|hasta cuándo",
    durations=r"minutos?|horas?|días?|noches?|semanas?|mes(?:es)?|años?",
    money=r"euros?|céntimos?|dólares|dólar|pesos?|gratis|gratuit[oa]s?|por ciento",
    dates=r"enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre|lunes|martes|"
    r"miércoles|jueves|viernes|sábados?|domingos?",
    kind_words="cuesta cuestan coste costo precio precios tarifa gastos pagar fecha día hora plazo tiempo tarda dura",
)


# A language is a file that makes one ``LanguageRules``. English has none: its rules are in the files that use them
# (``terms``, ``sentences``), where they were measured. Text in a language without a file gets no rules of another
# one where something is judged; its words are cut as English ones are, since cutting must do something.

ENGLISH = "en"
"""The code of the language whose rules are everywhere, and of documents that name no other."""
LANGUAGES: dict[str, LanguageRules] = {
    each.code: each for each in (GERMAN, FRENCH, SPANISH, PORTUGUESE, ITALIAN, DUTCH)
}
"""The languages with rules, besides English, by their codes of two letters (ISO 639-1)."""


def rules_of(language: str) -> LanguageRules | None:
    """Return the rules of a language; None for English and for a language without rules."""
    return LANGUAGES.get(language)


def has_rules(language: str) -> bool:
    """Return whether a language has rules, as English has."""
    return language == ENGLISH or language in LANGUAGES
