"""The glossary: a button, a list with a search, and a note beside a word that was clicked."""
