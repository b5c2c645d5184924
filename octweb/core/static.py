"""Store static files with digests in their names, compressed; the settings name this module."""

from __future__ import annotations

from typing import Any

from whitenoise.compress import Compressor
from whitenoise.storage import CompressedManifestStaticFilesStorage


class StaticFiles(CompressedManifestStaticFilesStorage):
    """Static files compressed with gzip only. Brotli, if installed, would take half a minute at the first start."""

    def create_compressor(self, **kwargs: Any) -> Compressor:
        """Return WhiteNoise's compressor without brotli."""
        return Compressor(use_brotli=False, **kwargs)
