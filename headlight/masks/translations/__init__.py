"""A mask as Python to copy: what each library calls it, and what True means there.

The conventions are those of the libraries' documentation; what a query without a key gets was read off what they
compute (PyTorch 2.13, transformers 5.23).
"""

from headlight.masks.translations.mask_to_translate import MaskToTranslate
from headlight.masks.translations.translation import TRANSLATIONS, Translation

__all__ = ["TRANSLATIONS", "MaskToTranslate", "Translation"]
