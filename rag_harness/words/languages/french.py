"""The rules of French."""

from __future__ import annotations

from rag_harness.words.languages.language_rules import LanguageRules

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
