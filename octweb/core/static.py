"""Static files under names that hold a digest, compressed once when they are collected."""

from __future__ import annotations

from typing import Any

from whitenoise.compress import Compressor
from whitenoise.storage import CompressedManifestStaticFilesStorage


class StaticFiles(CompressedManifestStaticFilesStorage):
    """With gzip alone: brotli at its highest level takes half a minute at the first start, wherever some package has brought it."""

    def create_compressor(self, **kwargs: Any) -> Compressor:
        """The compressor of WhiteNoise without brotli."""
        return Compressor(use_brotli=False, **kwargs)
