"""Pretrained checkpoints: found, fetched, loaded and run. Only safetensors and GGUF are read; no code is run."""
