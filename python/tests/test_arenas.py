"""Offsets of tensors in one arena."""

import numpy
import pytest

import remat


def test_tensors_share_bytes():
    placement = remat.place([(0, 4, 1000), (4, 6, 800), (3, 5, 100)])
    assert placement.height == placement.lower_bound == 1100
    assert placement.offsets.dtype == numpy.uint64
    remat.check_placement(placement.lifetimes, placement.height)
    with pytest.raises(remat.CheckError):
        remat.check_placement(placement.lifetimes, placement.height - 1)
    placement.lifetimes["offset"] = 0
    with pytest.raises(remat.CheckError):
        remat.check_placement(placement.lifetimes, placement.height)


def test_an_array_of_live_ranges_is_placed_without_a_copy():
    array = numpy.zeros(3, remat.LIFETIME)
    array["upper"], array["size"] = 2, 10
    placement = remat.place(array, alignment=64)
    assert placement.lifetimes is array and sorted(array["offset"]) == [0, 64, 128]
    assert numpy.shares_memory(placement.offsets, array)
    array.flags.writeable = False
    assert remat.place(array).lifetimes is not array
    assert remat.place([]).height == 0


def test_a_capacity_that_is_missed():
    with pytest.raises(remat.BudgetError) as caught:
        remat.place([(0, 2, 10), (1, 3, 10)], capacity=15)
    assert caught.value.plan.height == 20 and sorted(caught.value.plan.offsets) == [0, 10]
    assert remat.place([(0, 2, 10), (1, 3, 10)], capacity="1KiB", effort=0).height <= 1024


def test_wrong_live_ranges():
    with pytest.raises(remat.InvalidError):
        remat.place([(3, 2, 10)])
    with pytest.raises(ValueError, match="not negative"):
        remat.place([(0, 2, -1)])
    with pytest.raises(ValueError, match="whole numbers"):
        remat.place([(0, 2, 0.5)])
    with pytest.raises(TypeError):
        remat.check_placement(numpy.zeros(3), 3)


def test_tables(tmp_path):
    (tmp_path / "ranges.csv").write_text("id,lower,upper,size,note\na,0,2,10,x\nb,1,3,20,y\n")
    with pytest.warns(remat.RematWarning, match="'note' is unknown"):
        table = remat.LifetimeTable.load(tmp_path / "ranges.csv")
    assert len(table) == 2 and table.ids == ("a", "b")
    height, bound = table.place()
    assert height == bound == 30
    table.check(height)
    assert table.rows[1].size == 20
    lines = table.to_csv().splitlines()
    assert lines[0] == "id,lower,upper,size,note,offset" and lines[1].startswith("a,0,2,10,x,")
    with pytest.raises(remat.InputFileError) as caught:
        remat.LifetimeTable("id,lower,upper,size\na,0,x,1\n", name="bad.csv")
    assert (caught.value.file, caught.value.line) == ("bad.csv", 2)
    with pytest.raises(remat.FileError):
        remat.LifetimeTable.load(tmp_path / "none.csv")
