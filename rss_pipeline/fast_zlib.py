"""zlib's format, read and written by ISA-L in a third of the time, or else by zlib."""

try:
    from isal.isal_zlib import compress, compressobj, decompress
except ImportError:
    # There is no wheel of it for this machine.
    from zlib import compress, compressobj, decompress  # type: ignore[assignment]

__all__ = ["compress", "compressobj", "decompress"]
