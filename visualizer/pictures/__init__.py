"""The contents of the pictures: a run and a selection in, labelled arrays out."""
