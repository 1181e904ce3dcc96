"""How long processing stood still, by the times of what came in and of what came out."""

from __future__ import annotations

from orders_fed import longest_stall


def test_a_time_without_outputs_counts_only_from_when_something_waits():
    assert longest_stall([0, 10, 5000], [(5, 1), (15, 1), (5200, 1)]) == (200, 5200)


def test_what_waits_from_the_last_output_on_counts_in_full():
    assert longest_stall([0, 10, 20], [(5, 1), (9000, 2)]) == (8990, 9000)


def test_an_output_of_several_inputs_takes_all_of_them_off_the_queue():
    assert longest_stall([0, 1, 2, 7000], [(3, 3), (7001, 1)]) == (1, 7001)


def test_what_came_out_before_the_stall_does_not_hide_what_did_not():
    assert longest_stall([0, 1, 2], [(3, 1), (4, 1), (8000, 1)]) == (7996, 8000)


def test_nothing_in_and_nothing_out_is_no_stall():
    assert longest_stall([], []) == (0, 0)
