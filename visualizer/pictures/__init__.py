"""What a picture draws: a run and a selection in, labelled arrays out."""
