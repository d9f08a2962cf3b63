"""Arrays that a person uploads or pastes, as tensors of booleans, integers or floats.

Nothing of them is ever evaluated or unpickled, and what is too large is refused before memory is taken for it.
"""

from visualizer.views.lab.mask_files.loading import ENDINGS, MAX_BYTES, pasted, uploaded

__all__ = ["ENDINGS", "MAX_BYTES", "pasted", "uploaded"]
