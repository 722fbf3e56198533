"""Drafts of questions about documents in another language than English: by a few forms of sentences, and by tables.

The makers for English read its grammar. Here a sentence is read that begins with its subject and has one of a few verbs
behind it: "Die Rückgabefrist beträgt 45 Tage". Such a sentence turns into a question without any grammar.
``question_forms`` has the verbs and the questions of each language; a language without forms gets no draft.
"""
