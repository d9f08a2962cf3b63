"""What is known of a stage: its inputs, its text, its checks, how its numbers came to be."""
