"""The content of a picture: a run and a selection in, labelled arrays out."""
