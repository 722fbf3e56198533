"""The pages of the project, and in ``made/`` what makes those of the reference that are made from the code."""
