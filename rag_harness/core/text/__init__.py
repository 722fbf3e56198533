"""Rules over text: terms, sentences, languages, numbers, citations, refusals and contradictions."""
