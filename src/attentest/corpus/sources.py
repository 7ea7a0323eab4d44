"""Every corpus that can be loaded by name, where it comes from and how it is prepared: one literal dict."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from functools import partial

from attentest.corpus.document import Document
from attentest.corpus.fetch.archive import Archive
from attentest.corpus.generators.planted import PLANTINGS
from attentest.corpus.generators.planted import documents as planted_documents
from attentest.corpus.generators.simulated import stories
from attentest.corpus.origin import Family, Files, Generated, Source, data_dir
from attentest.corpus.preparation import Preparation
from attentest.corpus.readers import adr, babi, cnn, eraser, imdb, mimic, newsgroups, reviews, snli, sst
from attentest.corpus.variants import reviews_source

__all__ = ["CORPORA", "Files", "Generated", "Source", "data_dir"]

Reader = Callable[[Archive], Iterator[Document]]
BABI = Preparation(dev_share=0.15, keep_sentences=True)
EMBEDDED = "Nothing to get: attentest makes it."


def _babi(task: int, title: str) -> Source:
    return Source(
        title=f"bAbI task {task}: {title}",
        cite="weston2015towards",
        licence="CC BY 3.0",
        size=11_000,
        how_to_get="Download tasks_1-20_v1-2.tar.gz, linked from https://research.facebook.com/downloads/babi/.",
        origin=Files(folder="babi", members=babi.members(task), reader=partial(babi.read, task=task)),
        preparation=BABI,
        family="babi",
    )


def _simulated_babi(task: int) -> Source:
    sizes = {"train": 10_000, "test": 1_000, "seed": 0}
    return Source(
        title=f"bAbI task {task}, told by a simulator of ours",
        cite="weston2015towards",
        licence="Apache-2.0",
        size=11_000,
        how_to_get=EMBEDDED,
        origin=Generated(make=partial(stories, task, **sizes), parameters={"task": task, **sizes}),
        preparation=BABI,
        family="babi",
    )


def _zhang(title: str, folder: str, layout: reviews.Layout, *, size: int, licence: str) -> Source:
    return Source(
        title=title,
        cite="zhang2015character",
        licence=licence,
        size=size,
        how_to_get=f"Download https://s3.amazonaws.com/fast-ai-nlp/{layout.folder}.tgz.",
        origin=Files(folder=folder, members=layout.members, reader=layout.read),
        # The papers' word vectors were word2vec's, which by default leaves out words that are rarer.
        preparation=Preparation(min_df=5, keep_sentences=True),
        family="reviews",
    )


def _mimic(title: str, preparation: Preparation, labels: tuple[str, str], reader: Reader) -> Source:
    return Source(
        title=f"MIMIC-III discharge summaries: {title}",
        cite="johnson2016mimic",
        licence="PhysioNet 1.5.0",
        size=59_652,
        how_to_get="Apply for credentialed access at https://physionet.org/content/mimiciii/1.4/ (a course on"
        " research with human subjects and a signed data use agreement), then put NOTEEVENTS.csv.gz and"
        " DIAGNOSES_ICD.csv.gz in mimic/; the published split for diabetes is in train_50_hadm_ids.csv,"
        " dev_50_hadm_ids.csv and test_50_hadm_ids.csv of https://github.com/jamesmullenbach/caml-mimic.",
        restriction="needs credentials",
        origin=Files(folder="mimic", members=mimic.MEMBERS, reader=reader),
        labels=labels,
        preparation=preparation,
    )


def _planted(name: str, title: str, family: Family = "classification") -> Source:
    planting = PLANTINGS[name]
    return Source(
        title=title,
        cite="attentest",
        licence="Apache-2.0",
        size=planting.train + planting.dev + planting.test,
        how_to_get=EMBEDDED,
        origin=Generated(make=partial(planted_documents, planting), parameters=asdict(planting)),
        preparation=Preparation(),
        family=family,
    )


CORPORA: dict[str, Source] = {
    "sst": Source(
        title="Stanford Sentiment Treebank, sentences that are not neutral",
        cite="socher2013recursive",
        licence="none stated",
        size=11_855,
        how_to_get="Download https://nlp.stanford.edu/sentiment/trainDevTestTrees_PTB.zip.",
        origin=Files(folder="sst", members=sst.MEMBERS, reader=sst.read),
        labels=("negative", "positive"),
        preparation=Preparation(digits="qqq", brackets=True, letters_only=True, longer_than=5),
    ),
    "imdb": Source(
        title="IMDB film reviews, positive or negative",
        cite="maas2011learning",
        licence="none stated",
        size=50_000,
        how_to_get="Download https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz.",
        origin=Files(folder="imdb", members=imdb.MEMBERS, reader=imdb.read),
        labels=("negative", "positive"),
        preparation=Preparation(
            digits="qqq",
            min_df=10,
            longer_than=6,
            shorter_than=400,
            dev_share=0.2,
            test_sample=0.2,
            split_seed=1378,
            keep_sentences=True,
        ),
    ),
    "imdb-ratings": Source(
        title="IMDB film reviews by rating, 1 to 4 and 7 to 10; stands in for IMDB-10",
        cite="maas2011learning",
        licence="none stated",
        size=50_000,
        how_to_get="Download https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz.",
        origin=Files(folder="imdb", members=imdb.MEMBERS, reader=partial(imdb.read, rated=True)),
        labels=imdb.RATINGS,
        preparation=Preparation(min_df=5, keep_sentences=True),
        family="reviews",
    ),
    "20news": Source(
        title="20 Newsgroups, baseball or hockey, without headers, quotations and signatures",
        cite="lang1995newsweeder",
        licence="none stated",
        size=1_993,
        how_to_get="Download http://qwone.com/~jason/20Newsgroups/20news-bydate.tar.gz.",
        origin=Files(folder="20news", members=newsgroups.MEMBERS, reader=newsgroups.read),
        labels=("baseball", "hockey"),
        preparation=Preparation(
            digits="qqq",
            min_df=2,
            longer_than=6,
            shorter_than=500,
            pool=True,
            test_share=0.2,
            dev_share=0.2,
            split_seed=13478,
            stratified=True,
            keep_sentences=True,
        ),
    ),
    "agnews": replace(
        _zhang(
            "AG News, world or business",
            "agnews",
            reviews.AGNEWS,
            size=127_600,
            licence="not commercial",
        ),
        labels=("world", "business"),
        preparation=Preparation(digits="qqq", min_df=5),
        family="classification",
    ),
    "snli": Source(
        title="SNLI: does the first sentence entail or contradict the second?",
        cite="bowman2015large",
        licence="CC BY-SA 4.0",
        size=570_152,
        how_to_get="Download https://nlp.stanford.edu/projects/snli/snli_1.0.zip.",
        origin=Files(folder="snli", members=snli.MEMBERS, reader=snli.read),
        labels=("contradiction", "entailment", "neutral"),
        preparation=Preparation(digits="qqq", min_df=3),
        family="nli",
    ),
    "babi-1": _babi(1, "one supporting fact"),
    "babi-2": _babi(2, "two supporting facts"),
    "babi-3": _babi(3, "three supporting facts"),
    "cnn": Source(
        title="CNN cloze questions: which entity of the news story was left out?",
        cite="hermann2015teaching",
        licence="none stated",
        size=387_420,
        how_to_get="Download the questions of CNN, cnn.tgz, linked from https://cs.nyu.edu/~kcho/DMQA/.",
        origin=Files(folder="cnn", members=cnn.MEMBERS, reader=cnn.read),
        preparation=Preparation(min_df=8),  # not digits="qqq", which would make one of all entities
        family="qa",
    ),
    "adr": Source(
        title="Tweets on drugs that tell of an adverse reaction, or do not",
        cite="nikfarjam2015pharmacovigilance",
        licence="Twitter's terms",
        size=20_508,
        how_to_get="Ask the authors (https://healthlanguageprocessing.org) for the tweets, which they may not"
        " publish, and put them in adr/ as .tsv files with the label and the tweet in the last two columns.",
        restriction="not redistributable",
        origin=Files(folder="adr", members=adr.MEMBERS, reader=adr.read),
        labels=("no", "yes"),
        preparation=Preparation(
            lower=False,  # the papers print tweets in their own case, and shouting says something
            digits="qqq",
            min_df=2,
            longer_than=5,
            shorter_than=100,
            test_share=0.2,
        ),
    ),
    "mimic-diabetes": _mimic(
        "diabetes or not",
        Preparation(digits="qqq", min_df=5, longer_than=6, shorter_than=4000, test_share=0.2),
        labels=("no diabetes", "diabetes"),
        reader=partial(mimic.read, codes={"diabetes": "25000"}, otherwise="no diabetes", lists=True),
    ),
    "mimic-anemia": _mimic(
        "chronic or acute anemia",
        Preparation(digits="qqq", min_df=5, shorter_than=4000, test_share=0.2),
        labels=("chronic", "acute"),
        reader=partial(mimic.read, codes={"chronic": "2852", "acute": "2851"}),
    ),
    "yelp": _zhang("Yelp reviews, 1 to 5 stars", "yelp", reviews.YELP, size=700_000, licence="Yelp's terms"),
    "amazon": _zhang(
        "Amazon reviews, 1 to 5 stars", "amazon", reviews.AMAZON, size=3_650_000, licence="Amazon's terms"
    ),
    "yahoo": _zhang("Yahoo Answers by topic", "yahoo", reviews.YAHOO, size=1_460_000, licence="none stated"),
    "movies": Source(
        title="Movie reviews of ERASER, positive or negative, with what people marked as the reason",
        cite="deyoung2020eraser",
        licence="none stated",
        size=1_999,
        how_to_get="Download https://www.eraserbenchmark.com/zipped/movies.tar.gz.",
        origin=Files(
            folder="eraser",
            members=eraser.members("movies"),
            reader=partial(eraser.read, name="movies", labels=eraser.SENTIMENT),
        ),
        labels=("negative", "positive"),
        preparation=Preparation(keep_sentences=True),
        family="reviews",
    ),
    "babi-1-simulated": _simulated_babi(1),
    "babi-2-simulated": _simulated_babi(2),
    "babi-3-simulated": _simulated_babi(3),
    "planted-keyword": _planted("planted-keyword", "One word decides"),
    "planted-negation": _planted("planted-negation", "One word decides, and a negator turns it round"),
    "planted-majority": _planted("planted-majority", "The majority of several cues decides"),
    "planted-keyvalue": _planted("planted-keyvalue", "The value after the key that is asked for", "qa"),
    "planted-reviews": reviews_source(),
}
