"""The rules of Italian."""

from __future__ import annotations

from rag_harness.words.languages.language_rules import LanguageRules

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
