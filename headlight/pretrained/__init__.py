"""Pretrained checkpoints: found, fetched, loaded and run. Only safetensors and GGUF are read, and no code of theirs."""
