"""The simulated stories stand in for the real ones: what is learnt from them holds on the real test file."""

import os
from dataclasses import replace

import pytest

import attentest as at


@pytest.mark.slow
@pytest.mark.realdata
@pytest.mark.skipif("ATTENTEST_DATA" not in os.environ, reason="needs real corpora under $ATTENTEST_DATA")
def test_a_model_of_simulated_stories_answers_the_real_questions_of_task_1():
    real = at.load_corpus("babi-1")
    simulated = replace(at.load_corpus("babi-1-simulated"), test=real.test)
    told, made = (at.train(corpus, seed=1).record.scores["test"]["accuracy"] for corpus in (real, simulated))
    assert abs(told - made) <= 0.02, (told, made)
    assert told >= 0.98
