"""The rules of Portuguese."""

from __future__ import annotations

from rag_harness.words.languages.language_rules import LanguageRules

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
