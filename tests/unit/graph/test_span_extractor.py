import pytest

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.graph.extractor import Extractor
from llama_index_advanced_rag.graph.records import ExtractionRecord, Mention
from llama_index_advanced_rag.graph.span_extractor import SpanExtractor


def test_it_is_an_extractor():
    extractor = SpanExtractor(language="fr")
    assert isinstance(extractor, Extractor)
    assert (SpanExtractor().identity, extractor.identity) == ("spans-1:auto", "spans-1:fr")


def test_one_record_for_each_text_with_places_in_it():
    texts = ["Claude was created by Anthropic.", "", "nothing here", "It paid $5 million on July 1, 2023."]
    records = SpanExtractor().extract(texts)
    assert [len(record.mentions) for record in records] == [2, 0, 0, 2]
    assert records[1] == ExtractionRecord()
    assert records[0].mentions[1] == Mention("Anthropic", "name", 22, 31)
    assert all(text[mention.start : mention.end] == mention.surface for text, record in zip(texts, records, strict=True) for mention in record.mentions)


def test_each_text_has_its_own_language():
    french = "L'architecture de l'Oréal est dans la loi, selon les avis de Amélie de Montchalin."
    english = "The Beatles were in the studio of Abbey Road."
    assert [[mention.surface for mention in record.mentions] for record in SpanExtractor().extract([french, english])] == [
        ["Oréal", "Amélie de Montchalin"],
        ["Beatles", "Abbey Road"],
    ]


def test_the_same_text_gives_the_same_record():
    text = "Jan Philip Solovej from University of Copenhagen"
    assert SpanExtractor().extract([text, text])[0] == SpanExtractor().extract([text])[0]


def test_an_unknown_language_is_refused():
    with pytest.raises(ConfigurationError, match=r"language is 'tlh'"):
        SpanExtractor(language="tlh")
