"""Citation keys, as people write them."""

import pytest

from attentest.references import Reference, brief, references, whole


def test_every_entry_is_read_and_none_of_its_tex_is_left():
    assert len(references()) >= 24
    for found in references().values():
        assert all((found.authors, found.title)) and found.year.isdigit()
        assert not set(found.brief + found.whole) & set("{}\\`$")


def test_accents_ampersands_and_quotes_become_letters():
    assert references()["hermann2015teaching"].authors[1] == "Kočiský"
    assert whole("castro2009polynomial").startswith("Castro, Gómez & Tejada (2009).")
    assert whole("castro2009polynomial").endswith("Computers & Operations Research.")
    assert "“Why Should I Trust You?”: Explaining" in whole("ribeiro2016trust")


@pytest.mark.parametrize(
    ("authors", "in_text", "in_a_list"),
    [
        (("Lang",), "Lang 2001", "Lang (2001). On it."),
        (("Jain", "Wallace"), "Jain & Wallace 2001", "Jain & Wallace (2001). On it."),
        (("A", "B", "C"), "A et al. 2001", "A, B & C (2001). On it."),
        (("A", "B", "C", "D", "E"), "A et al. 2001", "A et al. (2001). On it."),
    ],
)
def test_authors_are_named_as_far_as_they_are_few(authors, in_text, in_a_list):
    found = Reference(authors, "2001", "On it", "")
    assert (found.brief, found.whole) == (in_text, in_a_list)


def test_a_question_keeps_its_mark_and_a_place_follows():
    assert (
        whole("serrano2019attention")
        == "Serrano & Smith (2019). Is Attention Interpretable? Proceedings of ACL."
    )


def test_a_key_of_somebody_elses_study_is_shown_as_it_is():
    assert brief("mine2026") == whole("mine2026") == "mine2026"
