"""Our own reading of footers and page headers agrees with pyarrow's."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from wayveil.io.parquet_pages import BadParquetError, page_sizes, row_groups


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False, "compression": "zstd"}, {"data_page_version": "2.0"},
                                     {"write_page_index": True, "write_page_checksum": True}])  # fmt: skip
def test_footers_agree_with_pyarrow(options):
    rng = np.random.default_rng(0)
    texts = [f"é{i}" * 20 for i in range(5000)]
    data = pa.table({"a.b": rng.random(5000), "n": pa.array([{"x": 1}] * 5000), "s": texts})
    buffer = io.BytesIO()
    pq.write_table(data, buffer, row_group_size=2000, data_page_size=4000, **options)
    facts = pq.ParquetFile(io.BytesIO(buffer.getvalue())).metadata
    groups = row_groups(buffer)
    assert [group.rows for group in groups] == [2000, 2000, 1000]
    for i, group in enumerate(groups):
        assert group.unpacked_bytes == facts.row_group(i).total_byte_size
        assert [chunk.column for chunk in group.chunks] == ["a.b", "n", "s"]
        for k, chunk in enumerate(group.chunks):
            theirs = facts.row_group(i).column(k)
            assert chunk.stop - chunk.start == theirs.total_compressed_size
            assert chunk.unpacked_bytes == theirs.total_uncompressed_size
            sizes = list(page_sizes(buffer, chunk.start, chunk.stop))
            # The footer's total counts the page headers too.
            assert 0 < chunk.unpacked_bytes - sum(sizes) < 300 * len(sizes)


def test_damage_is_noticed():
    buffer = io.BytesIO()
    pq.write_table(pa.table({"a": np.arange(1000)}), buffer)
    whole = buffer.getvalue()
    (group,) = row_groups(buffer)
    for bad in (b"", whole[:-1], whole[:-8] + b"\xff\xff\xff\x7fPAR1", whole[:-12] + whole[-8:], bytes(100)):
        with pytest.raises(BadParquetError):
            row_groups(io.BytesIO(bad))
    for bad in (bytes(len(whole)), b"\xff" * len(whole), b"\x15" * len(whole), b"\x1c" * len(whole)):
        with pytest.raises(BadParquetError):
            list(page_sizes(io.BytesIO(bad), group.chunks[0].start, group.chunks[0].stop))
