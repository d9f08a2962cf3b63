"""Arrays come back as they were written; whatever else is given is refused in one sentence."""

from __future__ import annotations

import io
import json
import tracemalloc

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_np

from visualizer.views.lab.mask_files import MAX_BYTES, pasted, uploaded
from visualizer.views.lab.mask_files.bounds import MAX_ENTRIES, MAX_SIDE
from visualizer.views.lab.mask_files.loading import MAX_TEXT_BYTES

CAUSAL = np.tri(5, dtype=np.bool_)
ADDED = np.where(CAUSAL, 0.0, -np.inf)
MASKS = {
    "booleans": CAUSAL,
    "integers": CAUSAL.astype(np.int64),
    "floats": CAUSAL.astype(np.float64),
    "added": ADDED,
}
every_mask = pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)

shapes = st_np.array_shapes(min_dims=2, max_dims=2, max_side=6)
masks = st.one_of(
    st_np.arrays(np.bool_, shapes),
    st_np.arrays(np.int64, shapes, elements=st.sampled_from([0, 1, -10000, 10**17])),
    st_np.arrays(
        np.float64, shapes, elements=st.sampled_from([0.0, 1.0, -np.inf, -1e9, 0.5, -3.4028234663852886e38])
    ),
)


def read_upload(name: str, data: bytes) -> np.ndarray:
    """The one array of a file."""
    [array] = uploaded(name, data).values()
    return array.numpy()


def read_pasted(text: str) -> np.ndarray:
    return pasted(text).numpy()


def saved(array: np.ndarray, version: tuple[int, int] | None = None, *, allow_pickle: bool = False) -> bytes:
    """A .npy file."""
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version, allow_pickle=allow_pickle)
    return file.getvalue()


def with_header(header: str, entries: bytes = b"", version: int = 1) -> bytes:
    """A .npy file with a header of one's own."""
    n_bytes = 2 if version == 1 else 4
    return b"\x93NUMPY" + bytes([version, 0]) + len(header).to_bytes(n_bytes, "little") + header.encode() + entries


def assert_same(found: np.ndarray, expected: np.ndarray) -> None:
    """The same entries in the same type; whole numbers that PyTorch has no type for are int64."""
    own = expected.dtype.newbyteorder("=")
    assert found.dtype == (np.int64 if own in (np.uint16, np.uint32, np.uint64) else own)
    np.testing.assert_array_equal(found, expected)


@given(masks)
def test_npy_comes_back(mask):
    assert_same(read_upload("mask.npy", saved(mask)), mask)


@pytest.mark.parametrize("kind", ["?", "i1", "u1", "<i2", ">i4", "<u8", "<f2", ">f4", "<f8", ">f8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_of_every_type_and_order_comes_back(kind, order):
    mask = np.array([[1, 0, 0], [1, 1, 0]], dtype=kind, order=order)
    assert_same(read_upload("mask.NPY", saved(mask)), np.load(io.BytesIO(saved(mask)), allow_pickle=False))


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_npy_of_every_version_comes_back(version):
    assert_same(read_upload("mask.npy", saved(CAUSAL, version)), CAUSAL)


@pytest.mark.parametrize("axes", [(5,), (1, 5), (1, 1, 5, 5), (2, 1, 1, 5), (4, 5, 5), (2, 3, 5, 5)])
def test_npy_of_every_shape_comes_back(axes):
    array = np.resize(CAUSAL, axes)
    assert_same(read_upload("mask.npy", saved(array)), array)


def test_what_was_read_can_be_made_a_tensor_without_a_warning():
    for data in (saved(CAUSAL), saved(ADDED.astype(">f4"))):
        [tensor] = uploaded("mask.npy", data).values()
        tensor[0, 0] = 1


def test_a_byte_that_is_no_boolean_is_true():
    data = bytearray(saved(CAUSAL))
    data[-1] = 7
    read = read_upload("mask.npy", bytes(data))
    assert_same(~read, ~CAUSAL)


def test_integers_beyond_int64_are_floats():
    mask = np.array([[0, 2**64 - 1]], dtype=np.uint64)
    np.testing.assert_array_equal(read_upload("mask.npy", saved(mask)), [[0.0, 2.0**64]])


def test_the_largest_array_that_fits_is_read():
    mask = np.tri(MAX_SIDE, dtype=np.float16)
    assert len(saved(mask)) < MAX_BYTES
    assert_same(read_upload("mask.npy", saved(mask)), mask)


class Trap:
    """Says so if it is ever unpickled."""

    def __reduce__(self):
        return spring, ()


SPRUNG = []


def spring() -> None:
    SPRUNG.append("sprung")


def test_nothing_is_unpickled():
    data = saved(np.array([[Trap()]], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="Object arrays cannot be loaded"):
        read_upload("mask.npy", data)
    assert not SPRUNG
    np.load(io.BytesIO(data), allow_pickle=True)
    assert SPRUNG


HEADER = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "this .npy file cannot be read"),
        (b"\x93NUMPY\x01", "this .npy file cannot be read"),
        (b"1,0\n1,1\n", "this .npy file cannot be read"),
        (b"\x93NUMPY\x09\x00" + bytes(64), "cannot be read: .we only support format version"),
        (saved(CAUSAL)[:40], "cannot be read: .EOF"),
        (saved(CAUSAL)[:-1], "cannot be read: .EOF"),
        (saved(np.zeros((2, 2), dtype=[("a", "f4"), ("b", "i4")])), "of '.V8': a mask has"),
        (
            saved(np.zeros((2, 2), dtype=[(f"field{i}", "f4") for i in range(99)])),
            "cannot be read: .Header info length",
        ),
        (saved(CAUSAL.astype(np.complex64)), "of '<c8': a mask has"),
        (saved(CAUSAL.astype(str)), "of '<U5': a mask has"),
        (saved(np.zeros((2, 2), dtype="M8[s]")), r"of '<M8\[s\]'"),
        (saved(np.zeros((2, 2), dtype="S1048576")[:0]), "of '.S1048576'"),
        (saved(np.zeros((2049, 1), dtype=np.bool_)), "more than 2,048 rows"),
        (saved(np.zeros((2, 2049), dtype=np.bool_)), "more than 2,048 columns"),
        (saved(np.zeros(2049, dtype=np.bool_)), "more than 2,048 columns"),
        (saved(np.zeros((2, 1, 4, 2, 2))), r"5 axes, and a mask has at most 4: \(B, H, Tq, Tk\)"),
        (saved(np.zeros((5, 1024, 1024), dtype=np.bool_)), "more than 4,194,304 entries, the limit"),
        (saved(np.zeros((0, 3))), r"empty: its shape is \(0, 3\)"),
        (saved(np.float64(1)), "a single number"),
        (with_header(HEADER.replace("2, 2", "9" * 900)), "cannot be read: .shape is not valid"),
        (with_header(HEADER.replace("2, 2", "99999999999, 99999999999")), "cannot be read"),
        (with_header(HEADER.replace("2, 2", "2**31, 2**31")), "cannot be read"),
        (with_header(HEADER.replace("2, 2", "1000000000, 100")), "cannot be read"),
        (with_header(HEADER.replace("2, 2", "-2, 2")), "cannot be read"),
        (with_header(HEADER.replace("2, 2", "2,, 2")), "cannot be read: .Cannot parse header"),
        (with_header(HEADER.replace("2, 2", "2 2")), "cannot be read: .Cannot parse header"),
        (
            with_header(HEADER.replace("fortran_order", "order"), bytes(32)),
            "cannot be read: .Header does not contain",
        ),
        (with_header(HEADER.replace("descr", "dtype")), "cannot be read: .Header does not contain"),
        (with_header(HEADER.replace("<f8", "<f8,<f8"), bytes(64)), "of '.V16'"),
        (with_header(HEADER.replace("<f8", "(9999,9999)f8")), "cannot be read"),
        (with_header("", version=2), "cannot be read"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff", "cannot be read: .EOF"),
        (bytes(MAX_BYTES + 1), "16.0 MiB; the limit is 16 MiB"),
    ],
)
def test_a_wrong_npy_is_refused_with_the_reason(data, message):
    with pytest.raises(ValueError, match=message):
        read_upload("mask.npy", data)


@every_mask
@pytest.mark.parametrize("separator", [",", ";", "\t", " ", ", ", "   "])
@pytest.mark.parametrize("ending", ["csv", "tsv", "txt"])
def test_lines_come_back(mask, separator, ending):
    lines = "\n".join(separator.join(str(entry) for entry in row) for row in mask.tolist())
    for text in (lines, f"\n{lines}\n\n", lines.replace("\n", "\r\n"), lines.lower(), lines.upper()):
        assert_same(read_upload(f"mask.{ending}", text.encode()), mask)


@given(masks)
def test_what_numpy_saves_as_text_comes_back(mask):
    file = io.StringIO()
    np.savetxt(file, mask, delimiter=",")
    expected = mask.astype(np.float64)
    np.testing.assert_array_equal(read_pasted(file.getvalue()), expected if mask.shape[1] > 1 else expected[:, 0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,0,\n1,1,\n", [[1, 0], [1, 1]]),
        ('"1","0"\n"1","1"', [[1, 0], [1, 1]]),
        ("1 0\n\n1 1", [[1, 0], [1, 1]]),
        ("0,-inf\n0,0", [[0, -np.inf], [0, 0]]),
        ("0,−1e9\n0,0", [[0, -1e9], [0, 0]]),
        ("0,-Infinity\n.0,+0.", [[0, -np.inf], [0, 0]]),
        ("1 1 0", [[1, 1, 0]]),
        ("1\n1\n0", [1, 1, 0]),
        ("true;FALSE\nTrue;true", [[True, False], [True, True]]),
        ("1", [1]),
    ],
)
def test_lines_may_be_written_in_many_ways(text, expected):
    assert_same(read_pasted(text), np.array(expected))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_texts_in_usual_encodings_are_read(encoding):
    assert_same(read_upload("mask.csv", "0,−1\n0,0".encode(encoding)), np.array([[0, -1], [0, 0]]))


@every_mask
def test_nested_lists_of_python_and_json_come_back(mask):
    for text in (str(mask.tolist()), json.dumps(mask.tolist())):
        assert_same(read_pasted(text), mask)
        assert_same(read_upload("mask.json", text.encode()), mask)


@given(masks)
def test_nested_lists_of_any_mask_come_back(mask):
    for text in (str(mask.tolist()), json.dumps(mask.tolist())):
        assert_same(read_pasted(text), mask)


def test_a_single_list_is_one_row():
    assert_same(read_pasted("[1, 1, 0]"), np.array([1, 1, 0]))


@pytest.mark.parametrize("axes", [(1, 1, 5, 5), (2, 1, 1, 5), (4, 5, 5), (2, 3, 5, 5)])
def test_nested_lists_of_several_axes_come_back(axes):
    array = np.resize(CAUSAL, axes)
    assert_same(read_pasted(str(array.tolist())), array)


def test_an_integer_beyond_64_bits_is_a_float():
    assert_same(read_pasted(f"[[{2**70}, 0]]"), np.array([[2.0**70, 0.0]]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "nothing in it"),
        (" \n\t ", "nothing in it"),
        ("1 0 1\n1 1 1\n1 0", "row 3 has 2 values and row 1 has 3"),
        ("[[1, 0, 1], [1, 1, 1], [1, 0]]", "row 3 has 2 values and row 1 has 3"),
        ("1,0\n1,x", "row 2, column 2 has 'x', which is neither a number"),
        ("1,0\n1,,", "row 2, column 2 is empty"),
        ("1,0\n1,null", "row 2, column 2 has 'null'"),
        ("[[1, 0], [1, null]]", "row 2, column 2 has 'None'"),
        ("[[1, 0], [1, 'x']]", "cannot be read at .'x'"),
        ('[[1, 0], [1, "x"]]', "row 2, column 2 has 'x'"),
        ("[[1, 0], [1, None]]", "cannot be read at 'None"),
        ("[[1, 0], [1, 1+0j]]", r"cannot be read at '\+0j"),
        ("[[1, 0], [1, 0x10]]", "cannot be read at 'x10"),
        ("[[1, 0], [1, 1_0]]", "cannot be read at '_0"),
        ("[[1, 0], [1, ١]]", "cannot be read at '١"),
        ("[[1, 0], [1, __import__('os')]]", "cannot be read at .__import__"),
        ("1,0\n1,1_0", "row 2, column 2 has '1_0'"),
        ("1,0\n1,١", "row 2, column 2 has '١'"),
        ("query,key\n1,0\n1,1", "row 1, 'query,key', has no numbers: if it is a header, remove it"),
        ("True,1\nTrue,False", "row 1, column 2 is 1 and row 1, column 1 is True"),
        ("[[0, 1], [False, 1]]", "row 2, column 1 is False and row 1, column 1 is 0"),
        ("[]", "empty"),
        ("[[], []]", "empty"),
        ("[[1], []]", "row 2 has 0 values and row 1 has 1"),
        ("[[1, 0], [1, 1]", r"a '\[' is never closed"),
        ("[[1, 0], [1, 1)]", r"cannot be read at '\)"),
        ("[[1, 0]]]", r"cannot be read at '\]'"),
        ("[[1, 0]] + [[1]]", r"cannot be read at '\+"),
        ("[[1, 0], 1]", "the value '1' stands beside lists"),
        ("[1, [1, 0]]", "the value '1' stands beside lists"),
        ("[[1, 0], [[1, 1]]]", "row 2 has 1 values and row 1 has 2"),
        ("[[1, 0], [[1], 1]]", "the value '1' stands beside lists"),
        ("[[1,, 0]]", "cannot be read at ', 0"),
        ("[, 1]", "cannot be read at ', 1"),
        ("[[[1, 0], [1, 1]], [[1, 0]]]", "row 2 has 1 values and row 1 has 2"),
        ("[[[[[1]], [[1]]]], [[[[1]], [[1]]]]]", "5 axes, and a mask has at most 4"),
        ("[[1 0]\n [1 1]]", "write them as mask.tolist"),
        ("tensor([[1, 0]])", "give the nested lists alone"),
        ("mask = [[1, 0]]", "give the nested lists alone"),
        ('{"mask": [[1]]}', "give the nested lists alone"),
        ("{}", "give the nested lists alone"),
        ("[" * 100_000, "nested too deep"),
        ("[" * 500_000 + "]" * 500_000, "nested too deep"),
        ("(" * 100_000, "has no numbers"),
        ("-" * 100_000, "has no numbers"),
        ("[" + "-" * 100_000, "cannot be read at '-{40}…'"),
        ("1 " * 2049, "more than 2,048 columns"),
        ("1\n" * 2049, "more than 2,048 rows"),
        ("[" + "1," * 2048 + "1]", "more than 2,048 columns"),
        ("[" + "[1]," * 2048 + "[1]]", "more than 2,048 rows"),
        ("[[" + "," * 500_000, "cannot be read at ',{40}…'"),
        ("," * 500, "row 1, column 1 is empty"),
        ("," * 500_000, "more than 2,048 columns"),
        ("1," + "," * 500_000, "more than 2,048 columns"),
        ("a" * MAX_TEXT_BYTES + "b", "4.0 MiB; the limit is 4 MiB"),
    ],
)
def test_a_wrong_text_is_refused_with_the_place(text, message):
    with pytest.raises(ValueError, match=message) as caught:
        read_pasted(text)
    assert len(str(caught.value)) < 250
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("mask.bin", b"1", "ends in '.bin': it must end in one of .npy, .npz, .safetensors, .pt, .pth, .csv"),
        ("mask", b"1", "ends in ''"),
        ("npy", b"1", "ends in ''"),
        ("mask.npz", saved(CAUSAL), "this .npz file cannot be read"),
        ("mask." + "x" * 1000, b"1", "ends in '.xxxx"),
        ("mask.csv", b"\xff1,0", "not text in UTF-8"),
        ("mask.csv", b"\xff\xfe1", "not text in UTF-8"),
        ("mask.csv", b"", "nothing in it"),
        ("mask.csv", saved(CAUSAL), "not text in UTF-8"),
        ("mask.json", b'{"mask": [[1]]}', "give the nested lists alone"),
        ("mask.json", b"null", "row 1, 'null', has no numbers"),
        ("mask.csv", b" " * (MAX_BYTES + 1), "the limit is 16 MiB"),
    ],
)
def test_a_wrong_file_is_refused_with_the_reason(name, data, message):
    with pytest.raises(ValueError, match=message):
        uploaded(name, data)


def assert_it_is_an_array_or_refused(read, *given_to_it) -> None:
    """Nothing but an array or a ValueError in one sentence."""
    refusal = ""
    try:
        array = read(*given_to_it)
    except ValueError as error:
        refusal = str(error)
    else:
        assert 1 <= array.ndim <= 4
        assert 0 < array.size <= MAX_ENTRIES
        assert array.dtype.kind in "biuf"
    assert "\n" not in refusal
    assert len(refusal) < 250


pieces = st.sampled_from(["[", "]", "(", ",", " ", "\n", "0", "1", "-", ".", "e", "inf", "True", "{", ":", ";"])


@given(st.one_of(st.text(), st.lists(pieces).map("".join)))
@example("[" * 100_000)
@example("\x00")
@example("1\x852")
@example("1e999999999,-1e999999999")
@example("[{}]")
@example("mask = ")
def test_any_text_is_an_array_or_refused(text):
    assert_it_is_an_array_or_refused(read_pasted, text)


@given(st.text(max_size=8), st.sampled_from(["npy", "csv", "tsv", "txt", "json", "npz"]), st.binary())
def test_any_file_is_an_array_or_refused(name, ending, data):
    assert_it_is_an_array_or_refused(read_upload, f"{name}.{ending}", data)


@given(st.binary(max_size=200), st.sampled_from([1, 2, 3, 4]))
def test_any_header_of_npy_is_read_or_refused(rest, version):
    assert_it_is_an_array_or_refused(read_upload, "mask.npy", b"\x93NUMPY" + bytes([version, 0]) + rest)


@given(
    masks,
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), min_size=1, max_size=4),
    st.integers(0, 10),
)
def test_a_damaged_npy_is_read_or_refused(mask, changes, n_lost):
    data = bytearray(saved(mask))
    for place, byte in changes:
        data[place % len(data)] = byte
    assert_it_is_an_array_or_refused(read_upload, "mask.npy", bytes(data[: len(data) - n_lost]))


@pytest.mark.parametrize(
    "text",
    [
        "[" * MAX_TEXT_BYTES,
        "," * MAX_TEXT_BYTES,
        "1," * (MAX_TEXT_BYTES // 2),
        "1\n" * (MAX_TEXT_BYTES // 2),
        "[]" * (MAX_TEXT_BYTES // 2),
    ],
    ids=["brackets", "commas", "one line", "many lines", "empty lists"],
)
def test_the_largest_texts_take_little_memory(text):
    tracemalloc.start()
    assert_it_is_an_array_or_refused(read_pasted, text)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**26
