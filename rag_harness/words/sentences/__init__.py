"""Where a sentence ends: six rules, a file each. They differ because a wrong end costs each reader something else.

- ``quoted``: the embedded reader quotes whole sentences. Its text is one line of prose without markup. A sentence ends
  at a mark, a space and no small letter; behind "e.g." and "No." it goes on.
- ``judged``: the embedded judge takes each sentence of an answer as a claim. Line ends and CJK marks end one too. Many
  more abbreviations, initials and the numbers of a list end none: half a claim has no support.
- ``cited``: the service marks the sentences of a document that a claim rests on, in the document as it is written. So
  headings, items and rows of tables are sentences of their own. It knows no abbreviation but single letters: a
  sentence too many is shown beside its neighbours.
- ``stated``: contradictions are looked for between statements. A semicolon ends one too, since both halves state
  something. A number that a sentence begins with ("2. Pay") ends none.
- ``asked``: questions are written from sentences. Only a capital letter or a digit begins the next one: a wrong cut
  would be a broken question, and a missed one loses a question only.
- ``rough``: a mark with blank space behind it, for rules that look for a text that is near another.

Borders of chunks are not here. They cut what is too long,
and lie with the chunkers.
"""
