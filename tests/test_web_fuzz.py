"""The HTTP interface, fuzzed from its own description: every answer fits it, or is a sentence with 4xx."""

import json
import string
from urllib.parse import urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("jsonschema")

import jsonschema

from attentest.store.store import Store
from attentest.web.application import DESCRIPTION
from tests.serving import KINDS, answered, application, fetched, put_kind, served
from tests.toys import WORDS

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
WORDY = st.lists(st.sampled_from((*WORDS, "?", "Unheard-of", "<b>")), max_size=12).map(" ".join)


class Description:
    """Strategies and validators made from OpenAPI."""

    def __init__(self, document, keys):
        self.document, self.keys = document, keys
        self.operations = [
            (method.upper(), path, about)
            for path, methods in document["paths"].items()
            for method, about in methods.items()
        ]

    def resolved(self, schema):
        if "$ref" in schema:
            return self.document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
        return schema

    def valid(self, schema):
        """Something that the schema allows; keys are mostly those of models, or nothing would be asked."""
        schema = self.resolved(schema)
        if "anyOf" in schema:
            return st.one_of([self.valid(each) for each in schema["anyOf"]])
        if "enum" in schema:
            return st.sampled_from(schema["enum"])
        return {
            "object": self._object,
            "array": lambda s: st.lists(self.valid(s["items"]), max_size=min(s.get("maxItems", 12), 12)),
            "string": self._string,
            "number": self._number,
            "integer": lambda s: st.integers(s.get("minimum"), s.get("maximum")),
            "boolean": lambda s: st.booleans(),
            "null": lambda s: st.none(),
        }[schema["type"]](schema)

    def _object(self, schema):
        required = set(schema.get("required", ()))
        made = {name: self.valid(about) for name, about in schema["properties"].items()}
        return st.fixed_dictionaries(
            {name: made[name] for name in made if name in required},
            optional={name: made[name] for name in made if name not in required},
        )

    def _string(self, schema):
        if "pattern" in schema:
            return st.sampled_from(self.keys) | st.from_regex(schema["pattern"], fullmatch=True)
        return WORDY | st.text(max_size=min(schema.get("maxLength", 60), 60))

    def _number(self, schema):
        low, high = schema.get("minimum", schema.get("exclusiveMinimum")), schema.get("maximum")
        return st.floats(low, high, exclude_min="exclusiveMinimum" in schema, allow_nan=False)

    def spoilt(self, schema):
        """Something near it: a field left out, added, or of another kind."""
        names = [*self.resolved(schema)["properties"], "more"]

        def change(drawn):
            question, name, how, value = drawn
            if how == "without":
                return {k: v for k, v in question.items() if k != name}
            return question | {name: value}

        ways = st.sampled_from(("without", "with"))
        return st.tuples(self.valid(schema), st.sampled_from(names), ways, ANYTHING).map(change)

    def check(self, about, status, body):
        assert status == 200 or 400 <= status < 500, (status, body[:500])
        schema = about["responses"]["200" if status == 200 else "4XX"]["content"]["application/json"][
            "schema"
        ]
        validator = jsonschema.Draft202012Validator({**schema, "components": self.document["components"]})
        document = json.loads(body, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
        validator.validate(document)
        if status != 200:
            assert document["error"]["message"].strip()


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("fuzz") / "store")
    app = application(store)
    app.keys = [put_kind(store, kind)[0] for kind in KINDS]
    return app


@pytest.fixture(scope="module")
def described(app):
    document = json.loads(asked(app, "GET", DESCRIPTION).body)
    return Description(document, app.keys)


def asked(app, method, target, body=b"", kind="application/json"):
    headers = {"host": "localhost", "content-type": kind}
    return answered(app, target, method, headers, body)


def put(app, method, path, question):
    if method == "GET":
        words = {name: json.dumps(v) if not isinstance(v, str) else v for name, v in question.items()}
        return asked(app, method, f"{path}?{urlencode(words, errors='replace')}")
    return asked(app, method, path, json.dumps(question).encode())


def operation(described, data):
    method, path, about = data.draw(st.sampled_from(described.operations))
    schema = {"type": "object", "properties": {}}
    if "requestBody" in about:
        schema = about["requestBody"]["content"]["application/json"]["schema"]
    elif "parameters" in about:
        properties = {each["name"]: each["schema"] for each in about["parameters"]}
        required = [each["name"] for each in about["parameters"] if each["required"]]
        schema |= {"properties": properties, "required": required}
    return method, path, about, schema


BOUNDS = settings(max_examples=120, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@BOUNDS
@given(data=st.data())
def test_every_question_that_fits_is_answered_as_described(app, described, data):
    method, path, about, schema = operation(described, data)
    response = put(app, method, path, data.draw(described.valid(schema)))
    assert response.status in (200, 422), response.body
    described.check(about, response.status, response.body)


@BOUNDS
@given(data=st.data())
def test_every_question_that_does_not_is_answered_with_a_sentence(app, described, data):
    method, path, about, schema = operation(described, data)
    response = put(app, method, path, data.draw(described.spoilt(schema)))
    described.check(about, response.status, response.body)


@BOUNDS
@given(path=st.sampled_from(("/api/read", "/api/decide")), body=st.binary(max_size=200))
def test_bytes_that_are_no_question_are_refused(app, path, body):
    assert asked(app, "POST", path, body).status == 400


def test_both_kinds_of_question_were_answered_well(app, described):
    """The fuzz can see a good answer: one of every route, made by hand."""
    key = app.keys[0]
    good = {
        "/api/models": {},
        "/api/example": {"model": key, "number": 1},
        "/api/read": {"model": key, "text": "the cat"},
        "/api/decide": {"model": key, "text": "the cat", "weights": [0.5, 0.5], "renormalise": True},
    }
    for method, path, about in described.operations:
        response = put(app, method, path, good[path])
        assert response.status == 200
        described.check(about, response.status, response.body)
        with pytest.raises(jsonschema.ValidationError):
            described.check(about, 200, b'{"other": 1}')


HEADER = st.text(string.ascii_letters + string.digits + " -:;,=/\\'\"<>[]@", max_size=60)


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(host=HEADER, cookie=HEADER, kind=HEADER, origin=HEADER, method=st.sampled_from(("GET", "POST", "PUT")))
def test_headers_never_break_it(address, host, cookie, kind, origin, method):
    headers = {"Host": host, "Cookie": cookie, "Content-Type": kind, "Origin": origin}
    status, _, body = fetched(address, "/api/read", method=method, body=b"{}", **headers)
    assert 400 <= status < 500 and json.loads(body)["error"]["message"]


@pytest.fixture(scope="module")
def address(app):
    with served(app) as address:
        yield address
