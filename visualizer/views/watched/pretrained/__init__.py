"""The door for pretrained models: a checkpoint is chosen, opened, given a text, and watched."""
