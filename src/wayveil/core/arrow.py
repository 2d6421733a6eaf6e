"""Convert columns of numbers between numpy and Arrow without a copy.

pyarrow's own conversions import pandas if it is installed, which takes more than half a second in every command.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def column_of(values: NDArray[Any]) -> Any:
    """An Arrow array of integers or floats that shares the memory of `values`."""
    import pyarrow as pa

    values = np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(values)])


def numbers_of(column: Any) -> NDArray[Any]:
    """The values of an Arrow column of integers or floats; missing values as pyarrow converts them."""
    chunks = column.chunks if hasattr(column, "chunks") else [column]
    if column.null_count or not chunks:
        result: NDArray[Any] = column.to_numpy() if hasattr(column, "chunks") else column.to_numpy(zero_copy_only=False)
        return result
    parts = [np.from_dlpack(chunk) for chunk in chunks]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def decoded(column: Any) -> Any:
    """A dictionary-encoded column with its values in place of codes; any other column unchanged."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        return column
    import pyarrow.compute as pc

    kind = column.type.value_type
    kind = pa.large_string() if pa.types.is_string_view(kind) else kind  # Arrow cannot take from a string view
    chunks = [pc.take(pc.cast(chunk.dictionary, kind), chunk.indices) for chunk in column.chunks]
    return pa.chunked_array(chunks, kind)
