"""A mask as Python to copy: what each library calls it, and what True means there.

The conventions are those of the libraries' documentation; what a query without a key gets was read off what they
compute (PyTorch 2.13, transformers 5.23).
"""

from model.mask_tools.translations.case import MaskToTranslate
from model.mask_tools.translations.translation import TRANSLATIONS, Translation

__all__ = ["TRANSLATIONS", "MaskToTranslate", "Translation"]
