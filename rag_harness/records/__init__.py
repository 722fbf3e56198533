"""Records of a run: rows, judged scores, cases, manifest and causes, with their files and their integrity."""
