"""The rules of Spanish."""

from __future__ import annotations

from rag_harness.words.languages.language_rules import LanguageRules

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
