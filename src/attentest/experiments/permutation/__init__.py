"""Permutation (Jain & Wallace 2019, JW-4): does it matter which token has which weight?"""

from attentest.experiments.description import Description

ABOUT = Description(
    name="permutation",
    title="Permutation",
    asks="Does the output change when the weights change places?",
    cite="jain2019attention",
    main={"median-output-change": "output change, attention permuted"},
)
