"""Lines of words, some of which open the glossary."""
