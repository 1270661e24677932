"""What Python complains of where a zip is cut off, damaged, encrypted or none."""

import lzma
import struct
import zipfile
import zlib

BROKEN = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, ValueError),
    *(EOFError, OSError, NotImplementedError, RuntimeError),
)
