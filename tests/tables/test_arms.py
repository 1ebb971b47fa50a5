"""Arms from tables: ids, features and repeats."""

import numpy as np
import pytest

from surepick.errors import InvalidInput
from surepick.tables import Table, column_names, grouped_arms, read_arms, read_table
from surepick.tables.selection import Unnamed

# ids


def test_several_id_columns_are_joined_as_written(write):
    path = write("n,theta,r,t,y\n6,0,1.50,0.7,1\n6,0,1.50,0.70,2\n")
    assert read_arms(path, "n, theta,r,t").ids == ("6/0/1.50/0.7", "6/0/1.50/0.70")
    assert read_arms(path, ["t"]).ids == ("0.7", "0.70")


def test_without_an_id_the_row_number_is_the_id(write):
    arms = read_arms(write("name,x\na,1\nb,2\n"))
    assert arms.ids == ("0", "1")
    assert arms.columns == ("x",)


def test_a_column_whose_name_holds_a_comma_is_found_whole(write):
    table = read_table(write('"a,b",a\n1,2\n'))
    assert column_names(table, "a,b") == ("a,b",)
    assert column_names(table, ["a,b", "a"]) == ("a,b", "a")


@pytest.mark.parametrize("names", ["", ",", "x,x", ()])
def test_no_column_or_one_named_twice_is_refused(write, names):
    with pytest.raises(InvalidInput, match="at least one column, and each of them once"):
        column_names(read_table(write("x\n1\n")), names)


def test_repeated_ids_are_refused_where_rows_are_arms(write):
    with pytest.raises(InvalidInput, match=r"1 ids are repeated .*'a'"):
        read_arms(write("sku,x\na,1\nb,2\na,1\n"), "sku")


def test_ids_that_only_look_equal_once_joined_are_refused(write):
    with pytest.raises(InvalidInput, match="are both the id 'a/b/c'"):
        read_arms(write("p,q,x\na/b,c,1\na,b/c,2\n"), "p,q")


def test_an_empty_id_is_refused(write):
    with pytest.raises(InvalidInput, match=r"row 3: the id \(sku\) is empty"):
        read_arms(write("sku,x\na,1\n,2\n"), "sku")


# features


def test_features_are_the_other_numeric_columns(write):
    arms = read_arms(write("sku,x,colour,y\na,1,red,4\nb,2,blue,5\n"), "sku")
    assert arms.columns == ("x", "y")
    np.testing.assert_array_equal(arms.features, [[1, 4], [2, 5]])
    assert arms.preparation == ()


def test_a_composite_id_lends_its_numeric_columns_when_there_are_no_others(write):
    arms = read_arms(write("n,t,name\n6,0.7,a\n7,0.8,b\n"), "n,t,name")
    assert arms.columns == ("n", "t")
    np.testing.assert_array_equal(arms.features, [[6, 0.7], [7, 0.8]])


def test_a_single_id_column_is_no_feature(write):
    assert read_arms(write("sku\n1\n2\n"), "sku").features.shape == (2, 0)


def test_a_named_text_column_is_one_hot_encoded(write):
    arms = read_arms(write("sku,x,colour\na,1,red\nb,2,blue\nc,3,red\n"), "sku", "colour,x")
    assert arms.columns == ("colour=blue", "colour=red", "x")
    np.testing.assert_array_equal(arms.features, [[0, 1, 1], [1, 0, 2], [0, 1, 3]])


@pytest.mark.parametrize("features", [Unnamed.needed, "x"])
def test_a_numeric_column_with_a_slip_is_refused_not_dropped(write, features):
    with pytest.raises(InvalidInput, match=r"'x' is not numeric: 1 of 3 cells .*row 3: 'about 2'"):
        read_arms(write("sku,x\na,1\nb,about 2\nc,3\n"), "sku", features)


@pytest.mark.parametrize(("cell", "words"), [("", "empty"), (" ", "empty"), ("n/a", "'n/a'"), ("NaN", "'NaN'")])
def test_a_missing_feature_is_refused(write, cell, words):
    with pytest.raises(InvalidInput, match=rf"1 of 3 rows miss a cell \(row 3: 'x' is {words}\)\. .*--drop-missing"):
        read_arms(write(f"sku,x\na,1\nb,{cell}\nc,3\n"), "sku", "x")


@pytest.mark.parametrize("standardize", [False, True])
def test_features_that_are_not_finite_are_named_by_id(write, standardize):
    with pytest.raises(InvalidInput, match="2 of 3 arms have NaN or infinite features: 'b', 'c'"):
        read_arms(write("sku,x\na,1\nb,-inf\nc,inf\n"), "sku", "x", standardize=standardize)


def test_standardize_then_intercept(write):
    arms = read_arms(write("sku,x,y\na,1,1e-9\nb,2,2e-9\nc,6,0\n"), "sku", standardize=True, intercept=True)
    assert arms.columns == ("x", "y", "intercept")
    assert arms.preparation == ("standardize", "intercept")
    np.testing.assert_allclose(arms.features[:, :2].mean(axis=0), 0, atol=1e-15)
    np.testing.assert_allclose(arms.features[:, :2].std(axis=0), 1, rtol=1e-14)
    np.testing.assert_array_equal(arms.features[:, 2], 1)


def test_a_spread_of_one_rounding_unit_is_standardized_not_lost(write):
    arms = read_arms(write("x\n1e16\n10000000000000002\n10000000000000004\n"), standardize=True)
    np.testing.assert_allclose(arms.features[:, 0], [-np.sqrt(1.5), 0, np.sqrt(1.5)], rtol=1e-12)


def test_an_intercept_alone_is_a_feature(write):
    np.testing.assert_array_equal(read_arms(write("sku\na\nb\n"), "sku", intercept=True).features, [[1], [1]])


@pytest.mark.parametrize("option", ["standardize", "intercept"])
def test_a_constant_feature_column_is_named_where_it_is_useless(write, option):
    with pytest.raises(InvalidInput, match=r"feature column 'y' is constant \(7 for every arm\)"):
        read_arms(write("sku,x,y\na,1,7\nb,2,7\n"), "sku", **{option: True})


def test_a_constant_feature_column_is_a_legitimate_intercept(write):
    assert read_arms(write("sku,x,y\na,1,7\nb,2,7\n"), "sku").columns == ("x", "y")


def test_an_intercept_does_not_replace_a_column_of_that_name(write):
    with pytest.raises(InvalidInput, match="already named 'intercept'"):
        read_arms(write("sku,intercept\na,1\nb,2\n"), "sku", intercept=True)


# repeats


def test_rows_of_one_id_are_one_arm_in_order_of_first_appearance(write):
    table = read_table(write("sku,x,y\nb,2,5\na,1,6\nb,2,7\n"))
    grouped = grouped_arms(table, "sku", exclude=("y",))
    assert grouped.arms.ids == ("b", "a")
    assert grouped.arms.columns == ("x",)
    np.testing.assert_array_equal(grouped.arms.features, [[2], [1]])
    np.testing.assert_array_equal(grouped.arm_of_row, [0, 1, 0])


def test_repeats_are_standardized_as_arms_not_as_rows(write):
    table = read_table(write("sku,x,y\nb,2,5\na,1,6\nb,2,7\n"))
    np.testing.assert_array_equal(
        grouped_arms(table, "sku", exclude=("y",), standardize=True).arms.features, [[1], [-1]]
    )


def test_repeats_that_differ_in_a_feature_are_named(write):
    table = read_table(write("sku,x,y\nb,2,5\na,1,6\nb,3,7\n"))
    with pytest.raises(InvalidInput, match=r"rows of id 'b' differ in the feature 'x' \(2 and 3\)"):
        grouped_arms(table, "sku", "x", exclude=("y",))


# Olympus folders


def test_ids_with_leading_zeros_stay_text(shared_data):
    arms = read_arms(shared_data / "nasbench_macro" / "nas_bench_macro_cifar10.csv.gz", "arch", "params,flops")
    assert arms.num_arms == 6561
    assert arms.ids[0] == "00000000"


def test_a_table_built_in_memory_serves_too():
    table = Table("memory", {"sku": ("a", "b"), "x": np.array([1.0, 2.0])})
    assert grouped_arms(table, "sku").arms.columns == ("x",)


@pytest.mark.parametrize(("cells", "ids"), [("ab", ("a", "b")), ("aa", ("0", "1"))])
def test_a_column_called_id_has_the_ids_if_it_can(tmp_path, cells, ids):
    path = tmp_path / "arms.csv"
    path.write_text("id,heat\n" + "".join(f"{cell},{row}.5\n" for row, cell in enumerate(cells)))
    assert read_arms(path).ids == ids
